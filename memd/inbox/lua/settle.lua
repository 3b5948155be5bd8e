-- The end of a claim: acked, released or buried. Each frees the bucket, and the next key of the bucket moves up.

local function read_claim(P, id)
  local claim = P .. ':claim:' .. id
  local key, bucket, owner, from, to, attempts, delays, suspect, held, endpoint = unpack(call('HMGET', claim, '.key',
    '.bucket', '.owner', '.from', '.to', '.attempts', '.delays', '.suspect', '.held', '.endpoint'))
  if not key then return nil end
  return {
    key = key, bucket = bucket, from = from, to = to, attempts = tonumber(attempts) or 0, suspect = suspect,
    delays = tonumber(delays) or 0, owner = owner, held = tonumber(held) or 0, endpoint = endpoint,
    answered = call('HEXISTS', claim, '.answer') == 1,
  }
end

local function close(P, id, c, now)
  if c.held > 0 then hold(P, c.owner, -c.held) end
  call('ZREM', P .. ':claimed', id)
  free_bucket(P, c.bucket, id, now)
end

-- Adds the record of how a range of sequence numbers ended; the last 50 are kept.
local function add_record(P, key, from, to, text)
  local outcome = P .. ':outcome:' .. key
  local lines = (call('HGET', outcome, '.ranges') or '') .. from .. ' ' .. to .. ' ' .. text .. '\n'
  local n = select(2, string.gsub(lines, '\n', '\n'))
  if n > 50 then lines = string.match(lines, '^[^\n]*\n(.*)$') end
  call('HSET', outcome, '.ranges', lines)
end

local function record(P, cfg, c, text, now)
  add_record(P, c.key, c.from, c.to, text)
  call('HDEL', P .. ':outcome:' .. c.key, '.claim')
  if call('EXISTS', P .. ':ctx:' .. c.key) == 0 then call('ZADD', P .. ':ended', now + cfg.receipt_ttl_ms, c.key) end
end

-- The counters of facts among stats that begin at argv[at]
local function fact_counts(argv, at)
  local counts = {}
  for i = at, #argv, 2 do
    if string.find(argv[i], '^facts_') then put(counts, argv[i], argv[i + 1]) end
  end
  return counts
end

-- memd_ack_1: KEYS P; ARGV claim, record, stat, n, stat, n... -> 1, or 0 when the claim does not exist any more
local function memd_ack(keys, argv)
  local P, id, now = keys[1], argv[1], clock()
  local c = read_claim(P, id)
  if not c then return 0 end
  local cfg = config(P)
  local newer, _, ttl = known_sets(P, cfg, c.key, now)
  sadd(newer, identities(P .. ':claim:' .. id))
  call('PEXPIRE', newer, ttl) -- not a moment longer than it is read: forget removes the two sets that are
  call('DEL', P .. ':claim:' .. id)
  record(P, cfg, c, argv[2], now)
  if string.find(argv[2], '"state":"stored"', 1, true) then
    if c.endpoint then end_formless_row(P, c.endpoint) end
    add_end(P, cfg, 'stored', c, fact_counts(argv, 3))
  end
  count_and_spend(P, cfg, c.owner, { unpack(argv, 3) }, now)
  note_extraction(P, cfg, c, { unpack(argv, 3) }, now)
  close(P, id, c, now)
  return 1
end

-- Makes a letter of the messages that gave up. P:dead:<letter> has the fields of its claim already.
local function add_letter(P, letter, key, code, err, now)
  local dead = P .. ':dead:' .. letter
  local died = P .. ':died:' .. key
  sadd(died, identities(dead))
  call('PERSIST', died)
  call('HSET', dead, '.code', code, '.error', err, '.died', now)
  call('ZADD', P .. ':dead', now, letter)
  call('HINCRBY', P .. ':outcome:' .. key, '.letters', 1)
end

local function bury(P, cfg, id, c, code, err, text, now)
  call('RENAME', P .. ':claim:' .. id, P .. ':dead:' .. id)
  call('HDEL', P .. ':dead:' .. id, '.endpoint', '.formless', unpack(BATCH_FIELDS))
  add_letter(P, id, c.key, code, err, now)
  record(P, cfg, c, text, now)
  local pushes = c.to - c.from + 1
  count(P, { 'dead', pushes, 'dead:' .. code, pushes })
  add_end(P, cfg, 'dead', c, { 'code', code, 'letter', id })
  close(P, id, c, now)
end

-- memd_bury_1: KEYS P; ARGV claim, code, error, record, stat, n... -> 1, or 0 when the claim does not exist any more
local function memd_bury(keys, argv)
  local P, id, now = keys[1], argv[1], clock()
  local c = read_claim(P, id)
  if not c then return 0 end
  local cfg = config(P)
  count_and_spend(P, cfg, c.owner, { unpack(argv, 5) }, now)
  note_extraction(P, cfg, c, { unpack(argv, 5) }, now)
  bury(P, cfg, id, c, argv[2], argv[3], argv[4], now)
  return 1
end

local LETTER_FIELDS = {
  '.key', '.thread', '.user', '.agent', '.bucket', '.owner', '.gen', '.first', '.last', '.attempts', '.wire',
  '.user_names', '.traces',
}

-- memd_part_1: KEYS P; ARGV claim, code, error, record, identity... -> how many of the claim's messages went to the
-- dead. The rest stays claimed: the drain has halved the messages until those that fail were alone.
local function memd_part(keys, argv)
  local P, id, now = keys[1], argv[1], clock()
  local c = read_claim(P, id)
  if not c then return 0 end
  local claim, fields, names, from, to, size = P .. ':claim:' .. id, {}, {}, nil, nil, 0
  for i = 5, #argv do
    local name = 'm:' .. argv[i]
    local value = call('HGET', claim, name)
    if value then
      local _, seq, tokens = parts(value)
      seq, size = tonumber(seq), size + tokens
      from, to = math.min(from or seq, seq), math.max(to or seq, seq)
      names[#names + 1] = name
      put(fields, name, value)
    end
  end
  if #names == 0 then return 0 end
  local letter = id .. '-' .. string.sub(names[1], 4, 11)
  for i, value in ipairs(call('HMGET', claim, unpack(LETTER_FIELDS))) do
    if value then put(fields, LETTER_FIELDS[i], value) end
  end
  put(fields, '.from', from)
  put(fields, '.to', to)
  hset(P .. ':dead:' .. letter, fields)
  hdel(claim, names)
  local rest, counted = unpack(call('HMGET', claim, '.size', '.tokens')) -- the claim may be given back later
  rest = math.max(0, (tonumber(rest) or 0) - size)
  call('HSET', claim, '.size', rest, '.tokens', math.min(tonumber(counted) or 0, rest))
  add_letter(P, letter, c.key, argv[2], argv[3], now)
  add_record(P, c.key, from, to, argv[4])
  count(P, { 'dead', to - from + 1, 'dead:' .. argv[2], to - from + 1 })
  local its = { key = c.key, owner = c.owner, bucket = c.bucket, from = from, to = to }
  add_end(P, config(P), 'dead', its, { 'code', argv[2], 'letter', letter })
  return #names
end

-- Puts one message back into a key that has new ones. If it was pushed again in the meantime, the newest text stays, in
-- the old place and with the old mark. Returns the tokens that this adds.
local function put_message_back(ctx, field, value)
  if call('HSETNX', ctx, field, value) == 1 then return tonumber((select(3, parts(value)))) end
  local order, seq, _, signals, _, at = parts(value)
  local _, _, tokens, newer, text, again = parts(call('HGET', ctx, field))
  call('HSET', ctx, field, message_value(order, seq, tokens, union(signals, newer), text, earlier(at, again)))
  return 0
end

local KEPT = { ['.urgent'] = true, ['.batch'] = true, ['.sent'] = true, ['.print'] = true, ['.answer'] = true,
  ['.formless'] = true }

-- Puts the fields of a claim or a letter into a key that has new messages.
local function merge_back(source, ctx)
  local flat, size, tokens = call('HGETALL', source), 0, nil
  for i = 1, #flat, 2 do
    local field, value = flat[i], flat[i + 1]
    if is_message(field) then
      size = size + put_message_back(ctx, field, value)
    elseif field == '.first' or field == '.from' then
      local newer = tonumber((call('HGET', ctx, field)))
      call('HSET', ctx, field, math.min(newer or math.huge, tonumber(value)))
    elseif field == '.to' then -- a second letter of the key may be newer than the first one, which is back already
      local newest = tonumber((call('HGET', ctx, field)))
      call('HSET', ctx, field, math.max(newest or 0, tonumber(value)))
    elseif field == '.tokens' then
      tokens = tonumber(value)
    elseif field == '.wire' then
      call('HSET', ctx, field, math.max(tonumber((call('HGET', ctx, field))) or 1, tonumber(value)))
    elseif field == '.user_names' or field == '.traces' then
      call('HSET', ctx, field, join_names(value, call('HGET', ctx, field) or ''))
    elseif KEPT[field] then
      call('HSET', ctx, field, value)
    end
  end
  call('HINCRBY', ctx, '.size', size)
  call('HINCRBY', ctx, '.tokens', math.min(size, tokens or size))
  call('DEL', source)
end

-- The messages of a claim or a letter are pending again, before what came since: they keep their order, and the key its
-- place in line.
local function put_back(P, source, key, bucket, changes)
  local ctx = P .. ':ctx:' .. key
  line_up(P, bucket, key, last_order(source))
  fields_of(P, key, '.bucket') -- one of a wrong type is set aside
  if call('EXISTS', ctx) == 0 then
    call('RENAME', source, ctx)
    call('HDEL', ctx, '.key', '.worker', '.now', '.suspect', '.parked', '.held', '.code', '.error', '.died',
      '.endpoint')
  else
    merge_back(source, ctx)
    call('ZADD', line_of(P, bucket), last_order(ctx), key) -- what was pushed again is back in its old place
  end
  hset(ctx, changes)
  return call('HGET', ctx, '.parked')
end

-- Puts a claim's messages back and frees its bucket. The key leaves every row: it waits for its own time now, and as
-- the one key that a free bucket unparks it would keep the others parked.
local function give_back(P, id, c, changes, now)
  put_back(P, P .. ':claim:' .. id, c.key, c.bucket, changes)
  call('HDEL', P .. ':outcome:' .. c.key, '.claim')
  call('ZREM', P .. ':parked:' .. c.bucket, c.key)
  for _, row in ipairs({ 'rationed', 'batched' }) do call('ZREM', P .. ':' .. row, c.key) end
  call('HDEL', P .. ':ctx:' .. c.key, '.parked')
  close(P, id, c, now)
end

-- A claim goes back, or to the dead when its attempts are used up. how: as of memd_release_1, or died; r: backoff in
-- ms, code, error, and the record if it is buried -> released or dead. Replies that are no update are counted by message
-- (memd_formless_1), so their worker alone decides when these are dead.
local function release(P, cfg, id, c, how, r, now)
  local by_death = how == 'expired' or how == 'died'
  local costs = how == 'failed' or how == 'formless' or (by_death and c.suspect)
  local attempts = c.attempts + (costs and 1 or 0)
  if costs and how ~= 'formless' and attempts >= cfg.max_attempts then
    call('HSET', P .. ':claim:' .. id, '.attempts', attempts)
    bury(P, cfg, id, c, r[2], r[3], r[4], now)
    return 'dead'
  end
  local after = now + tonumber(r[1])
  local changes = { '.attempts', attempts, '.delays', costs and 0 or c.delays + 1, '.after', after }
  if by_death then put(changes, '.suspect', 1) end
  give_back(P, id, c, changes, now)
  if how == 'failed' then -- a batch's answer that failed is not tried again
    call('HDEL', P .. ':ctx:' .. c.key, unpack(BATCH_FIELDS))
  end
  set_due(P, c.key, c.bucket, nil, after, now, cfg.tick_ms)
  count(P, { 'released:' .. how, 1 })
  return 'released'
end

-- memd_release_1: KEYS P; ARGV claim, how (failed: costs an attempt; formless: the same, and never the last one; paused:
-- costs none; expired: the lease ran out), backoff in ms, code, error, the record if it is buried, stat, n...
-- -> released, dead, or lost
local function memd_release(keys, argv)
  local P, id, how, now = keys[1], argv[1], argv[2], clock()
  local c = read_claim(P, id)
  if not c then
    call('ZREM', P .. ':claimed', id)
    return 'lost'
  end
  local cfg = config(P)
  if how == 'expired' then
    local lease = tonumber(call('ZSCORE', P .. ':claimed', id))
    if lease and lease > now then return 'lost' end -- extended in the meantime
  end
  count_and_spend(P, cfg, c.owner, { unpack(argv, 7) }, now)
  return release(P, cfg, id, c, how, { unpack(argv, 3, 6) }, now)
end

-- memd_died_1: KEYS P; ARGV worker, code, error, the record if a claim is buried -> how many claims the worker had. The
-- worker is dead for certain, so its claims do not wait for their leases. The names of workers are never used again.
local function memd_died(keys, argv)
  local P, worker, now, n = keys[1], argv[1], clock(), 0
  local cfg = config(P)
  each_counted(P, call('ZRANGE', P .. ':claimed', 0, -1), function(id)
    if call('HGET', P .. ':claim:' .. id, '.worker') == worker then
      release(P, cfg, id, read_claim(P, id), 'died', { 0, argv[2], argv[3], argv[4] }, now)
      n = n + 1
    end
  end)
  return n
end

-- memd_formless_1: KEYS P; ARGV claim, counts -> 1, or 0 when the claim does not exist any more. A reply was no update:
-- notes how many there were for which messages, before the next call, so that no worker's death makes them forgotten. An
-- answer that the claim came with is dropped: it was this reply.
local function memd_formless(keys, argv)
  local claim = keys[1] .. ':claim:' .. argv[1]
  if call('EXISTS', claim) == 0 then return 0 end
  call('HSET', claim, '.formless', argv[2])
  call('HDEL', claim, unpack(BATCH_FIELDS))
  return 1
end

register('memd_formless', memd_formless)
register('memd_ack', memd_ack)
register('memd_bury', memd_bury)
register('memd_part', memd_part)
register('memd_release', memd_release)
register('memd_died', memd_died)
