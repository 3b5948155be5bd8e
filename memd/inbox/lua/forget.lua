-- Forgetting: what the inbox holds of a user is read or removed, page by page; a tombstone keeps it from coming back.
--
-- A cut separates what was accepted before a wish from what came later: "<order> <ms>", the order of the last message
-- and the time when the wish was made; the order is - where the inbox was out of reach then. "" takes everything.

local FORGET_PAGE = 100
local FORGOTTEN = '{"state":"skipped","reason":"forgotten"}'

local function read_cut(text)
  local order, at = string.match(text or '', '^(%S+) (%d+)$')
  return order and { order = tonumber(order), at = tonumber(at) }
end

-- Whether a cut takes what has this order and this time. What has no time was taken in by an older build; a time ahead
-- of the clock was written before the clock was set back.
local function is_before(cut, order, at, now)
  if not cut then return true end
  at = tonumber(at)
  if cut.order and (tonumber(order) or 0) > cut.order then return false end
  return not at or at <= cut.at or at > now
end

-- The messages of a context, a claim or a letter that a cut takes, and how many stay, with which tokens and from which
-- sequence number on
local function divide(hash, cut, now)
  local found = { gone = {}, left = 0, size = 0, from = math.huge }
  local flat = call('HGETALL', hash)
  for i = 1, #flat, 2 do
    if is_message(flat[i]) then
      local order, seq, tokens, _, _, at = parts(flat[i + 1])
      if is_before(cut, order, at, now) then
        found.gone[#found.gone + 1] = flat[i]
      else
        found.left, found.size = found.left + 1, found.size + tokens
        found.from = math.min(found.from, seq)
      end
    end
  end
  return found
end

-- The same for the messages whose identities are gone for another reason
local function divide_by(hash, is_gone)
  local found = { gone = {}, left = 0, size = 0, from = math.huge }
  for i, identity in ipairs(identities(hash)) do
    if is_gone(identity, i) then
      found.gone[#found.gone + 1] = 'm:' .. identity
    else
      local _, seq, tokens = parts(call('HGET', hash, 'm:' .. identity))
      found.left, found.size = found.left + 1, found.size + tokens
      found.from = math.min(found.from, seq)
    end
  end
  return found
end

local function add_identities(ids, fields)
  for _, field in ipairs(fields) do ids[#ids + 1] = string.sub(field, 3) end
end

-- Records that the pushes from one sequence number to the one before another were forgotten.
local function add_forgotten(P, key, from, upto)
  if tonumber(from) < tonumber(upto) then add_record(P, key, from, upto - 1, FORGOTTEN) end
end

-- Removes what a cut takes; without a message the hash goes. -> whether messages stay
local function cut_out(hash, found)
  if found.left == 0 then
    call('DEL', hash)
    return false
  end
  if #found.gone > 0 then
    hdel(hash, found.gone)
    local tokens = tonumber(call('HGET', hash, '.tokens')) or 0
    call('HSET', hash, '.from', found.from, '.size', found.size, '.tokens', math.min(tokens, found.size))
    call('HDEL', hash, unpack(BATCH_FIELDS)) -- they were about the oldest messages
  end
  return true
end

-- What the inbox holds of one key and a cut takes -> bucket, pushes under way, identities. The identities of dead
-- letters are those that memd_old_letters reads, unless none of the key is left.
local function read_traces(P, cfg, key, cut, now)
  local bucket, claim, letters = unpack(call('HMGET', P .. ':outcome:' .. key, '.bucket', '.claim', '.letters'))
  local ids, pushes = {}, 0
  local hashes = { P .. ':ctx:' .. key }
  if claim then hashes[2] = P .. ':claim:' .. claim end
  for _, hash in ipairs(hashes) do
    local from, to, its_bucket = peek(hash, '.from', '.to', '.bucket')
    if from then
      local found = divide(hash, cut, now)
      pushes, bucket = pushes + (found.left == 0 and to + 1 or found.from) - from, its_bucket
      add_identities(ids, found.gone)
    end
  end
  local newer, older = known_sets(P, cfg, key, now)
  local sets = { newer, older }
  if not cut or (tonumber(letters) or 0) == 0 then sets[3] = P .. ':died:' .. key end
  for _, set in ipairs(sets) do
    for _, identity in ipairs(call('SMEMBERS', set)) do ids[#ids + 1] = identity end
  end
  return bucket, pushes, ids
end

-- The claim of a key loses what `take` finds. The rest is pending again, and no worker holds it any more.
-- -> the claim if nothing of it is left, for the caller to close
local function forget_claim(P, cfg, key, take, now)
  local id = call('HGET', P .. ':outcome:' .. key, '.claim')
  local c = id and read_claim(P, id)
  if not c then return nil end
  c.id = id
  local claim = P .. ':claim:' .. id
  if not cut_out(claim, take(claim)) then return c end
  give_back(P, id, c, {}, now)
  set_due(P, key, c.bucket, nil, now, now, cfg.tick_ms)
  return nil
end

-- Keeps the outcome of a key that has pushes after the cut: their receipts go on. Of the others it says `forgotten`.
local function keep_outcome(P, cfg, key, kept, letters, now)
  local outcome, lines, last = P .. ':outcome:' .. key, {}, 0
  for line in string.gmatch(call('HGET', outcome, '.ranges') or '', '[^\n]+') do
    local to, text = string.match(line, '^%d+ (%d+) (.*)$')
    if text == FORGOTTEN or (letters and string.find(text, '"state":"dead"', 1, true)) then
      lines[#lines + 1] = line .. '\n'
      last = math.max(last, to)
    end
  end
  call('HSET', outcome, '.ranges', table.concat(lines))
  local to = kept and call('HGET', P .. ':ctx:' .. key, '.from') - 1 or tonumber(call('HGET', outcome, '.seq')) or 0
  if to > last then add_record(P, key, last + 1, to, FORGOTTEN) end
  if not kept then call('ZADD', P .. ':ended', now + cfg.receipt_ttl_ms, key) end
  if not letters then call('DEL', P .. ':died:' .. key) end
end

-- A pending key loses what `take` finds -> whether messages stay
local function forget_pending(P, key, bucket, take, now)
  local ctx = P .. ':ctx:' .. key
  local parked = call('HGET', ctx, '.parked')
  if cut_out(ctx, take(ctx)) then
    if parked == 'batched' and call('HEXISTS', ctx, '.batch') == 0 then bring_back(P, 'batched', key, now) end
    return true
  end
  for _, row in ipairs({ 'due', 'rationed', 'batched', 'ended' }) do call('ZREM', P .. ':' .. row, key) end
  if bucket then
    call('ZREM', P .. ':parked:' .. bucket, key)
    call('ZREM', line_of(P, bucket), key)
    if call('HEXISTS', P .. ':busy', bucket) == 0 then unpark(P, bucket, now) end -- others may have waited for it
  end
  return false
end

-- Whether anything of a key was pushed after a cut by time: even if it only repeated what is forgotten, it has a receipt.
local function has_later_push(P, key, cut)
  if not cut or cut.order then return false end
  local outcome = P .. ':outcome:' .. key
  local id, ranges = unpack(call('HMGET', outcome, '.claim', '.ranges'))
  for _, hash in ipairs({ P .. ':ctx:' .. key, P .. ':claim:' .. (id or '') }) do
    local last = tonumber(call('HGET', hash, '.last'))
    if last and last > cut.at then return true end
  end
  return string.find(ranges or '', FORGOTTEN, 1, true) ~= nil -- it was kept before, by a mending that was cut short
end

local function forget_key(P, cfg, owner, key, bucket, cut, now)
  local later = has_later_push(P, key, cut)
  local function take(hash) return divide(hash, cut, now) end
  local c = forget_claim(P, cfg, key, take, now)
  local kept = forget_pending(P, key, bucket, take, now)
  local outcome = P .. ':outcome:' .. key
  local letters = cut and (tonumber(call('HGET', outcome, '.letters')) or 0) > 0
  local newer, older = known_sets(P, cfg, key, now)
  local oldest = P .. ':known:' .. key -- the one set that builds before 6 had
  call('DEL', newer, older, oldest)
  call('DEL', P .. ':extracted:' .. key)
  if kept or letters or later then
    call('HSET', outcome, '.owner', owner, '.bucket', bucket)
    if c then call('HDEL', outcome, '.claim') end
    keep_outcome(P, cfg, key, kept, letters, now)
  else
    call('DEL', P .. ':died:' .. key, outcome)
    call('SREM', P .. ':user:' .. owner, key)
  end
  if c then close(P, c.id, c, now) end -- last, because freeing the bucket moves the next key up
end

-- How much a user talked on these days is a trace, too.
local function forget_days(P, owner, now)
  local today = math.floor(now / DAY)
  for day = today - 1, today do call('HDEL', P .. ':spent:' .. day, owner) end
end

-- One page of a user's keys. remove: a function that removes a key, or nil to read only
local function traces(P, argv, remove)
  local owner, bucket, cut, now, cfg = argv[1], argv[2], read_cut(argv[4]), clock(), config(P)
  local page = call('SSCAN', P .. ':user:' .. owner, argv[3], 'COUNT', FORGET_PAGE)
  local answer, under_way = { page[1], 0 }, 0
  local wrong = each(page[2], function(key)
    local its_bucket, pushes, ids = read_traces(P, cfg, key, cut, now)
    if bucket == '' or bucket == its_bucket then
      under_way = under_way + pushes
      for _, identity in ipairs(ids) do answer[#answer + 1] = identity end
      if remove then remove(P, cfg, owner, key, its_bucket, cut, now) end
    end
  end)
  if remove and wrong > 0 then count(P, { 'wrong_type', wrong }) end
  answer[2] = under_way
  if remove and bucket == '' then forget_days(P, owner, now) end
  if remove and under_way > 0 then count(P, { 'forgotten', under_way }) end
  return answer
end

-- memd_traces_1: KEYS P; ARGV owner, bucket or "" for all, cursor, cut -> { cursor, pushes under way, identity... }: one
-- page
local function memd_traces(keys, argv) return traces(keys[1], argv, nil) end

-- memd_forget_1: the same, and removes what it returns. The dead are removed before, by memd_forget_letters.
local function memd_forget(keys, argv) return traces(keys[1], argv, forget_key) end

-- A letter loses what the cut takes; a raw push goes or stays as a whole.
local function forget_letter(P, cfg, letter, found, now)
  local dead = P .. ':dead:' .. letter
  local key, from, to = unpack(call('HMGET', dead, '.key', '.from', '.to'))
  if found.left == 0 then return drop(P, cfg, letter, now) end
  local ids = {}
  add_identities(ids, found.gone)
  srem(P .. ':died:' .. key, ids)
  cut_out(dead, found)
  remove_record(P, key, from, to)
  add_forgotten(P, key, from, found.from)
  add_record(P, key, found.from, to, '{"state":"dead","reason":"' .. call('HGET', dead, '.code') .. '"}')
  return 0
end

-- Reads letters, and removes with `remove` what the cut takes of them -> { letters that the cut takes whole, identity... }
local function letters(P, argv, remove)
  local cut, now, cfg, answer = read_cut(argv[1]), clock(), config(P), { 0 }
  for i = 2, #argv do
    local dead = P .. ':dead:' .. argv[i]
    local raw, order, at = unpack(call('HMGET', dead, '.raw', '.order', '.at'))
    local found = divide(dead, cut, now)
    if raw and not is_before(cut, order, at, now) then found.left = 1 end
    add_identities(answer, found.gone)
    if found.left == 0 then answer[1] = answer[1] + 1 end
    if remove and (found.left == 0 or #found.gone > 0) then remove(P, cfg, argv[i], found, now) end
  end
  return answer
end

-- memd_old_letters_1: KEYS P; ARGV cut, letter... -> { letters that the cut takes, identity... }
register('memd_old_letters', function(keys, argv) return letters(keys[1], argv, nil) end, { 'no-writes' })

-- memd_forget_letters_1: the same, and removes what it returns
register('memd_forget_letters', function(keys, argv) return letters(keys[1], argv, forget_letter) end)

-- What a user's tombstone names of the messages of a hash, and what stays
local function divide_by_tombstone(P, owner, hash)
  local bucket = call('HGET', hash, '.bucket')
  local ids = bucket and identities(hash) or {}
  local gone = #ids > 0 and forgotten(P, owner, bucket, ids) or {}
  return divide_by(hash, function(_, i) return gone[i] end)
end

-- memd_strike_1: KEYS P; ARGV owner, cursor -> next cursor, messages removed. What a user's tombstone names goes from
-- what is pending or claimed: it was sent again before the forgetting had ended, or a server that took over has it still.
register('memd_strike', function(keys, argv)
  local P, owner, now, struck = keys[1], argv[1], clock(), 0
  local cfg = config(P)
  local page = call('SSCAN', P .. ':user:' .. owner, argv[2], 'COUNT', FORGET_PAGE)
  each_counted(P, page[2], function(key)
    local function named(hash) -- nil where nothing goes, else what the hash loses
      local found = divide_by_tombstone(P, owner, hash)
      if #found.gone == 0 then return nil end
      struck = struck + #found.gone
      if found.left > 0 then add_forgotten(P, key, call('HGET', hash, '.from'), found.from) end
      return function() return found end
    end
    local id, ctx, c = call('HGET', P .. ':outcome:' .. key, '.claim'), P .. ':ctx:' .. key, nil
    local take = id and named(P .. ':claim:' .. id)
    if take then c = forget_claim(P, cfg, key, take, now) end
    take = named(ctx)
    if take then
      local bucket, from, to = unpack(call('HMGET', ctx, '.bucket', '.from', '.to'))
      if not forget_pending(P, key, bucket, take, now) then
        add_record(P, key, from, to, FORGOTTEN)
        call('ZADD', P .. ':ended', now + cfg.receipt_ttl_ms, key)
      end
    end
    if c then
      record(P, cfg, c, FORGOTTEN, now)
      close(P, c.id, c, now) -- last, because freeing the bucket moves the next key up
    end
  end)
  return { page[1], struck }
end)

-- memd_strike_letters_1: KEYS P; ARGV owner, letter... -> 1: the same for these of the dead
register('memd_strike_letters', function(keys, argv)
  local P, owner, now = keys[1], argv[1], clock()
  local cfg = config(P)
  for i = 2, #argv do
    local found = divide_by_tombstone(P, owner, P .. ':dead:' .. argv[i])
    if #found.gone > 0 then forget_letter(P, cfg, argv[i], found, now) end
  end
  return 1
end)

-- memd_cut_1: KEYS P -> { order of the last message, now }: the cut of a wish that is made now
register('memd_cut', function(keys) return { tonumber(call('GET', keys[1] .. ':order')) or 0, clock() } end, { 'no-writes' })

-- memd_tombstone_1: KEYS P; ARGV owner, salt, then salted hashes, and fields as ".<name>=<value>" -> 1: messages with these
-- hashes are skipped as forgotten
local function memd_tombstone(keys, argv)
  local tomb, fields = keys[1] .. ':forgotten:' .. argv[1], { '.salt', argv[2] }
  for i = 3, #argv do
    local field, value = string.match(argv[i], '^(%.%l+)=(.*)$')
    put(fields, field or argv[i], value or 1)
  end
  hset(tomb, fields)
  return 1
end

register('memd_traces', memd_traces, { 'no-writes' })
register('memd_forget', memd_forget)
register('memd_tombstone', memd_tombstone)
