-- The inbox: every key, and every move between them. One function call is one atomic move.
--
--   memd:in, memd:in:<app>      list   raw pushes, as they came by RPUSH
--   P = {memd}                         the prefix of all other keys, given as KEYS[1]
--   P:ctx:<key>                 hash   what is pending of a key:
--        m:<identity>                  "<order> <seq> <tokens> <signals> <message>"; signals joined by ",", "-" for none
--        .thread .user .agent          the ids themselves        .bucket .owner   hash of bucket, hash of user
--        .first .last                  ms of the first and last push that count
--        .size .tokens                 tokens of all messages; of those that count towards flush_tokens
--        .from .to .gen                the sequence numbers pending, the receipt generation
--        .attempts .delays             attempts that content cost; releases that cost nothing, since the last attempt
--        .after .now .suspect          not before (ms); flushed; its lease ran out once
--        .parked                       where it waits if not in due: 1 (for its bucket), rationed or batched
--        .urgent                       was pushed or flushed to be done now: it goes into no batch
--        .batch .sent .print           its request in a batch, the order of the last message in it, what it asked for
--        .answer                       the answer to that request, until a claim takes it
--   P:due                       zset   key -> ms at which it may be claimed
--   P:rationed                  zset   key -> ms until which it waits for a budget of tokens
--   P:batched                   zset   key -> ms at which it is due again though its batch has not answered
--   P:batches                   zset   batch -> ms at which it is asked for next
--   P:batch:<id>                hash   request -> "<key> <hash of user> <tokens held>" while not answered; .made ms; .at endpoint
--   P:claim:<id>                hash   what a claim took: the fields of ctx, and .key .worker; .held: tokens held back for it
--   P:claimed                   zset   claim -> ms of lease end
--   P:busy                      hash   bucket -> claim now working on it
--   P:parked:<bucket>           zset   due keys that wait for their bucket, by due time
--   P:known:<key>:<n>           set    identities taken in the nth known_ttl_ms since 1970, kept until the next is over (TTL), so
--                                      that there are two at most; a hint for size and due time, no more
--   P:dead                      zset   id -> ms of death
--   P:dead:<id>                 hash   what gave up: the fields of its claim, .code .error .died, or .raw .origin
--   P:died:<key>                set    identities in the dead
--   P:outcome:<key>             hash   .seq .gen .claim, .owner .bucket from the first claim on, .letters: its dead letters, and
--                                      .ranges: lines "<from> <to> <record>", the last 50
--   P:forgotten:<owner>         hash   mirror of a user's tombstone: .salt, and a field for each salted hash of an identity
--   P:ended                     zset   key -> ms at which its outcome may be forgotten
--   P:user:<owner>              set    the keys of a user: pending, claimed, dead, outcomes
--   P:breaker:<endpoint>        hash   until (ms) while open, wait, delay, code, opened, probe (claim), probe_until; failed: in a row
--   P:breakers                  set    endpoints that have ever had a breaker open
--   P:spent:<day>               hash   hash of user, .total -> tokens that calls of a day (UTC) used; while there is a budget (TTL)
--   P:held                      hash   hash of user, .total -> tokens held back for the claims under way; while there is a budget
--   P:usage:<day>               hash   "<kind>:<model>" -> what calls of a day (UTC) used (TTL)
--   P:notices                   list   "<hash of user, or total> <tokens> <ms>": budgets that were reached; the scheduler says them
--   P:config                    hash   the settings the functions need, and the build of the loaded libraries
--   P:stats                     hash   counters
--   P:unread                    set    raw lists that no scheduler reads, as the config does not name their apps
--   P:taken                     hash   raw list -> pushes taken in so far
--   P:order                     string the counter that orders messages
--   P:wake                      list   at most one element: rings the scheduler
--   rq:worker:<name>            hash   RQ's own, gone when the worker is; our field memd: the version it runs

-- [shared]

local function call(...) return redis.call(...) end -- redis.call is not there yet while a library loads
local OPEN = { '.thread', '.user', '.agent', '.bucket', '.owner' }
local HSET_CHUNK = 1000 -- unpack() takes some 8,000 values at most
local DAY = 86400000 -- ms; days are UTC's, by the server's clock
local POLL_MS = 60000 -- where the settings do not say how often a batch is asked for
local BATCH_MS = 26 * 3600000 -- a batch ends within 24 hours; what it has not answered by then is asked for anew

local function clock()
  local t = call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function config(P)
  local flat, cfg = call('HGETALL', P .. ':config'), {}
  for i = 1, #flat, 2 do cfg[flat[i]] = tonumber(flat[i + 1]) or flat[i + 1] end
  return cfg
end

local function hset(key, fields)
  for i = 1, #fields, HSET_CHUNK do
    call('HSET', key, unpack(fields, i, math.min(i + HSET_CHUNK - 1, #fields)))
  end
end

local function wake(P)
  if call('LLEN', P .. ':wake') == 0 then call('LPUSH', P .. ':wake', '1') end
end

local function count(P, stats)
  for i = 1, #stats, 2 do call('HINCRBY', P .. ':stats', stats[i], stats[i + 1]) end
end

-- Puts a key where it waits. A parked key stays parked while its bucket is busy, and only its place in the row changes.
local function set_due(P, key, bucket, parked, due, now, tick)
  if parked == 'rationed' or parked == 'batched' then return end -- no push brings it back: these are no debounce
  if parked then
    if call('HEXISTS', P .. ':busy', bucket) == 1 then
      call('ZADD', P .. ':parked:' .. bucket, due, key)
      return
    end
    call('ZREM', P .. ':parked:' .. bucket, key)
    call('HDEL', P .. ':ctx:' .. key, '.parked')
  end
  call('ZADD', P .. ':due', due, key)
  if due <= now + tick then wake(P) end
end

-- "<order> <seq> <tokens> <signals> <message>" -> its parts
local function parts(value)
  return string.match(value, '^(%d+) (%d+) (%d+) (%S+) (.*)$')
end

local function union(a, b)
  if a == '-' then return b end
  for signal in string.gmatch(b, '[^,-]+') do
    if not string.find(',' .. a .. ',', ',' .. signal .. ',', 1, true) then a = a .. ',' .. signal end
  end
  return a
end

-- A message without id and predecessor is also known by thread, role and content alone (DESIGN, "Identity").
local function pending_twin(ctx, identity)
  if string.sub(identity, 1, 1) ~= 'n' or string.sub(identity, 26) ~= '000000000000' then return nil end
  local prefix = 'm:' .. string.sub(identity, 1, 25)
  for _, field in ipairs(call('HKEYS', ctx)) do
    if string.sub(field, 1, 27) == prefix then return string.sub(field, 3) end
  end
  return nil
end

-- Where the identities are that were taken not long ago: the set that grows now, the one before, and for how many ms the first is still read.
-- A set that began anew only when nobody talks would hold all that was ever said in a thread that never rests.
local function known_sets(P, cfg, key, now)
  local n = math.floor(now / cfg.known_ttl_ms)
  return P .. ':known:' .. key .. ':' .. n, P .. ':known:' .. key .. ':' .. n - 1, (n + 2) * cfg.known_ttl_ms - now
end

-- For each of these messages whether it was taken not long ago, and whether it is in the dead: 1 or 0; nil where none is.
local function hints(P, cfg, key, ids, now)
  local newer, older = known_sets(P, cfg, key, now)
  local died = P .. ':died:' .. key
  if call('EXISTS', newer, older, died) == 0 then return nil, nil end
  local known, before = call('SMISMEMBER', newer, unpack(ids)), call('SMISMEMBER', older, unpack(ids))
  for i = 1, #ids do known[i] = math.max(known[i], before[i]) end
  return known, call('SMISMEMBER', died, unpack(ids))
end

-- Which of these messages were forgotten: { index = true }, or nil. The hashes are those of memd/memory/store/tombstone.py.
local function forgotten(P, owner, bucket, ids)
  local tomb = P .. ':forgotten:' .. owner
  local salt = call('HGET', tomb, '.salt')
  if not salt then return nil end
  local gone = {}
  for i, identity in ipairs(ids) do
    local forms = { identity }
    if string.sub(identity, 1, 1) == 'n' and string.sub(identity, 26) == '000000000000' then forms[2] = string.sub(identity, 1, 25) end
    for _, form in ipairs(forms) do
      for _, scope in ipairs({ '', bucket }) do
        if call('HEXISTS', tomb, redis.sha1hex(salt .. ':' .. scope .. ':' .. form)) == 1 then gone[i] = true end
      end
    end
  end
  return gone
end

-- The merge: both doors end here. `h` is the header, `at` the index of the first message in `argv`.
-- Answers { status, key, gen, seq, due, now, reason }.
local function merge(P, cfg, h, argv, at)
  local now, key = clock(), h.key
  local ctx, outcome = P .. ':ctx:' .. key, P .. ':outcome:' .. key
  local meta = call('HMGET', ctx, '.first', '.tokens', '.size', '.after', '.parked', '.gen', '.to', '.now', '.last')
  local fresh = not meta[1]
  local ids = {}
  for i, m in ipairs(h.m) do ids[i] = m[1] end
  local known, died = hints(P, cfg, key, ids, now)
  local gone = forgotten(P, h.owner, h.bucket, ids)
  local fields, added, counted, tokens, size, alive = {}, 0, 0, tonumber(meta[2]) or 0, tonumber(meta[3]) or 0, 0
  local changes, ghosts = {}, 0
  for i, m in ipairs(h.m) do
    local identity = m[1]
    if gone and gone[i] then
      ghosts = ghosts + 1
    elseif not (died and died[i] == 1) then
      alive = alive + 1
      local old = not fresh and call('HGET', ctx, 'm:' .. identity)
      if not old and not fresh then
        local twin = pending_twin(ctx, identity)
        if twin then identity, old = twin, call('HGET', ctx, 'm:' .. twin) end
      end
      local counts = not (known and known[i] == 1)
      if not old then
        changes[#changes + 1] = { identity, m[2], m[3], argv[at + i - 1] }
        size = size + m[2]
        if counts then tokens = tokens + m[2] end
        added = added + 1
      else
        local order, seq, was, signals, text = parts(old)
        local both = union(signals, m[3])
        if text ~= argv[at + i - 1] or both ~= signals then
          fields[#fields + 1] = 'm:' .. identity
          fields[#fields + 1] = order .. ' ' .. seq .. ' ' .. m[2] .. ' ' .. both .. ' ' .. argv[at + i - 1]
          size = size + m[2] - was
          if counts then tokens = tokens + m[2] - was end
        end
      end
      if counts then counted = counted + 1 end
    end
  end
  if alive == 0 then return { 'skipped', key, '', 0, 0, now, ghosts > 0 and 'forgotten' or 'already_dead' } end

  if h.now and meta[5] == 'batched' then -- now is now: what its batch will say comes too late, unless it is faster
    call('ZREM', P .. ':batched', key)
    call('HDEL', ctx, '.parked')
    call('ZADD', P .. ':due', now, key)
    meta[5] = false
  end
  local gen, seq = meta[6], tonumber(meta[7])
  if added > 0 or #fields > 0 or fresh then
    seq = call('HINCRBY', outcome, '.seq', 1)
    if seq == 1 then
      gen = h.gen
      call('HSET', outcome, '.gen', gen)
    elseif not gen then
      gen = call('HGET', outcome, '.gen')
    end
    local order = call('INCRBY', P .. ':order', #changes) - #changes
    for i, c in ipairs(changes) do
      fields[#fields + 1] = 'm:' .. c[1]
      fields[#fields + 1] = (order + i) .. ' ' .. seq .. ' ' .. c[2] .. ' ' .. c[3] .. ' ' .. c[4]
    end
    count(P, { 'pushes', 1, 'messages', added })
    if h.dropped then count(P, h.dropped) end
  end
  -- The clock may have been set back: what came first cannot lie ahead.
  local first = fresh and now or math.min(tonumber(meta[1]), now)
  local after = tonumber(meta[4]) or 0
  local last = tonumber(meta[9]) or now
  if counted > 0 or fresh then last = now end
  local due = math.min(last + cfg.quiet_ms, first + cfg.max_wait_ms)
  local at_once = h.now or meta[8]
  if at_once or tokens >= cfg.flush_tokens then due = now end
  if h.now then after = 0 end
  if after > now then due = math.max(due, math.min(after, now + cfg.backoff_max_ms)) end
  local was = not fresh and not meta[5] and call('ZSCORE', P .. ':due', key)
  if was and tonumber(was) <= now then due = tonumber(was) end -- what is due stays due
  for _, pair in ipairs({ { '.last', last }, { '.tokens', tokens }, { '.size', size }, { '.to', seq } }) do
    fields[#fields + 1] = pair[1]
    fields[#fields + 1] = pair[2]
  end
  if h.now then
    for _, value in ipairs({ '.now', 1, '.urgent', 1, '.after', 0 }) do fields[#fields + 1] = value end
  end
  if fresh then
    local open = { h.ids[1], h.ids[2], h.ids[3], h.bucket, h.owner }
    for i, name in ipairs(OPEN) do
      fields[#fields + 1] = name
      fields[#fields + 1] = open[i]
    end
    for _, value in ipairs({ '.first', first, '.from', seq, '.gen', gen }) do fields[#fields + 1] = value end
    call('SADD', P .. ':user:' .. h.owner, key)
  end
  hset(ctx, fields)
  set_due(P, key, h.bucket, meta[5], due, now, cfg.tick_ms)
  if meta[5] == 'rationed' then due = tonumber(call('ZSCORE', P .. ':rationed', key)) or due end
  if meta[5] == 'batched' then due = tonumber(call('ZSCORE', P .. ':batched', key)) or due end
  return { fresh and 'queued' or 'merged', key, gen, seq, due, now, '' }
end

local function is_hash(value, length)
  return type(value) == 'string' and #value == length and not string.find(value, '[^0-9a-f]')
end

local function drops_error(dropped)
  if dropped == nil then return nil end
  if type(dropped) ~= 'table' or #dropped > 64 or #dropped % 2 ~= 0 then return 'E_DROPPED: dropped is a list of counters' end
  for i = 1, #dropped, 2 do
    local name, n = dropped[i], dropped[i + 1]
    if type(name) ~= 'string' or #name > 64 or not string.find(name, '^dropped:[a-z_]+$')
      or type(n) ~= 'number' or n < 0 or n > 1e6 or n ~= math.floor(n) then
      return 'E_DROPPED: dropped is a list of counters'
    end
  end
  return nil
end

-- Count, size and shape; what the messages say is checked again by the drain.
local function shape_error(cfg, h, argv, at)
  if type(h) ~= 'table' or h.v ~= 1 then return 'E_VERSION: this server takes version 1 of the wire format' end
  if not (is_hash(h.key, 32) and is_hash(h.bucket, 32) and is_hash(h.owner, 32) and is_hash(h.gen, 8)) then
    return 'E_HEADER_HASH: key, bucket and owner are 32 hexadecimal digits, gen is 8'
  end
  if type(h.ids) ~= 'table' or #h.ids ~= 3 then return 'E_HEADER_IDS: ids are thread, user and agent' end
  for i = 1, 3 do
    local id = h.ids[i]
    if type(id) ~= 'string' or #id > 256 or (#id == 0 and i < 3) then
      return 'E_HEADER_IDS: an id is a string of 1 to 256 bytes'
    end
  end
  if type(h.m) ~= 'table' then return 'E_MESSAGES_EMPTY: a push carries at least one message' end
  if #h.m > cfg.max_messages then return 'E_MESSAGES_COUNT: a push carries at most ' .. cfg.max_messages .. ' messages' end
  if #h.m == 0 and not h.dropped then return 'E_MESSAGES_EMPTY: a push carries at least one message' end
  if #h.m ~= #argv - at + 1 then return 'E_MESSAGES_COUNT: the header must name each message once' end
  local wrong = drops_error(h.dropped)
  if wrong then return wrong end
  local bytes = 0
  for i, m in ipairs(h.m) do
    if type(m) ~= 'table' or type(m[1]) ~= 'string' or #m[1] ~= 37 or not string.find(m[1], '^[in]%x+$') then
      return 'E_IDENTITY: an identity is i or n and 36 hexadecimal digits'
    end
    if type(m[2]) ~= 'number' or m[2] < 0 or m[2] > 1e9 or m[2] ~= math.floor(m[2]) then
      return 'E_TOKENS: tokens are a whole number'
    end
    if type(m[3]) ~= 'string' or not (m[3] == '-' or string.find(m[3], '^[a-z][a-z,]*$')) or #m[3] > 200 then
      return 'E_SIGNALS: signals are names joined by commas, or -'
    end
    bytes = bytes + #argv[at + i - 1]
  end
  if bytes > cfg.max_push_bytes then return 'E_PUSH_SIZE: a push has at most ' .. cfg.max_push_bytes .. ' bytes' end
  return nil
end

local function header(text)
  local ok, h = pcall(cjson.decode, text)
  return ok and h or nil
end

-- [push]

-- memd_push: KEYS P; ARGV header, message... -> what merge answers, or an error
redis.register_function('memd_push', function(keys, argv)
  local P = keys[1]
  local cfg = config(P)
  if not cfg.quiet_ms then return redis.error_reply('MEMDNOTREADY no scheduler has ever started on this server') end
  if cfg.enabled == 0 then return { 'disabled', '', '', 0, 0, clock(), 'disabled' } end
  if cfg.full == 1 then return redis.error_reply('MEMDFULL the server is near its memory limit') end
  local h = header(argv[1])
  local wrong = shape_error(cfg, h, argv, 2)
  if wrong then return redis.error_reply('MEMDREJECTED ' .. wrong) end
  if #h.m == 0 then -- filtering left nothing: only counted
    count(P, h.dropped)
    count(P, { 'skipped', 1, 'skipped:nothing_left', 1 })
    return { 'skipped', h.key, '', 0, 0, clock(), 'nothing_left' }
  end
  return merge(P, cfg, h, argv, 2)
end)

-- [drain]

local function day_end(now) return (math.floor(now / DAY) + 1) * DAY end

-- Until when the calls of a user wait for a budget of tokens; nil when they need not. What is only held back for claims under
-- way may come to less, so that is looked at again soon.
local function broke(P, cfg, owner, now)
  local limits, wait = { cfg.total_day_tokens or 0, cfg.user_day_tokens or 0 }, nil
  if limits[1] == 0 and limits[2] == 0 then return nil end
  local spent = call('HMGET', P .. ':spent:' .. math.floor(now / DAY), '.total', owner)
  local held = call('HMGET', P .. ':held', '.total', owner)
  for i, limit in ipairs(limits) do
    local used = tonumber(spent[i]) or 0
    if limit > 0 and used >= limit then return day_end(now) end
    if limit > 0 and used + (tonumber(held[i]) or 0) >= limit then wait = math.min(now + cfg.backoff_max_ms, day_end(now)) end
  end
  return wait
end

local CALL_TOKENS = 2000 -- held back for a call besides its text: roughly its instructions, facts and answer

local function hold(P, owner, tokens)
  for _, who in ipairs({ '.total', owner }) do
    if call('HINCRBY', P .. ':held', who, tokens) <= 0 then call('HDEL', P .. ':held', who) end
  end
end

-- Counts tokens against one budget of the day. When this reaches it, the scheduler is to say so, once.
local function charge(P, spent, who, limit, tokens, now)
  if limit == 0 then return end
  local used = call('HINCRBY', spent, who, tokens)
  call('PEXPIRE', spent, 2 * DAY)
  if used >= limit and used - tokens < limit then
    call('RPUSH', P .. ':notices', (who == '.total' and 'total' or who) .. ' ' .. limit .. ' ' .. day_end(now))
    call('PEXPIRE', P .. ':notices', 2 * DAY)
  end
end

-- Counts what calls used, "used:<kind>:<model>" among the stats, by day and model, and against the budgets.
local function spend(P, cfg, owner, stats, now) -- owner: false for one who was forgotten
  local tokens, day = 0, math.floor(now / DAY)
  local usage = P .. ':usage:' .. day
  for i = 1, #stats, 2 do
    local kind, model = string.match(stats[i], '^used:([a-z_]+):(.+)$')
    if kind then
      call('HINCRBY', usage, kind .. ':' .. model, stats[i + 1])
      if not string.find(kind, 'calls', 1, true) then tokens = tokens + stats[i + 1] end
    end
  end
  if tokens == 0 then return end
  call('PEXPIRE', usage, 2 * DAY)
  charge(P, P .. ':spent:' .. day, '.total', cfg.total_day_tokens or 0, tokens, now)
  if owner then charge(P, P .. ':spent:' .. day, owner, cfg.user_day_tokens or 0, tokens, now) end
end

-- Brings the earliest parked key of a free bucket back.
local function unpark(P, bucket, now)
  local row = P .. ':parked:' .. bucket
  local moved = call('ZPOPMIN', row)
  -- One key is enough while it can be claimed at once; if even the earliest lies ahead, none of them needs the row.
  while #moved == 2 do
    call('HDEL', P .. ':ctx:' .. moved[1], '.parked')
    call('ZADD', P .. ':due', moved[2], moved[1])
    if tonumber(moved[2]) <= now then
      wake(P)
      return
    end
    moved = call('ZPOPMIN', row)
  end
end

local function free_bucket(P, bucket, id, now)
  if call('HGET', P .. ':busy', bucket) ~= id then return end
  call('HDEL', P .. ':busy', bucket)
  unpark(P, bucket, now)
end

-- A key that waits for its time (rationed) or its batch (batched) is in the row of that name, not in due.
local function rest(P, row, key, bucket, moment, now)
  call('ZREM', P .. ':due', key)
  call('ZADD', P .. ':' .. row, moment, key)
  call('HSET', P .. ':ctx:' .. key, '.parked', row)
  -- Nothing of its bucket may be left to wait for a key that is not going to be claimed.
  if call('HEXISTS', P .. ':busy', bucket) == 0 then unpark(P, bucket, now) end
end

local function rouse(P, row, key, due)
  call('ZREM', P .. ':' .. row, key)
  call('HDEL', P .. ':ctx:' .. key, '.parked')
  call('ZADD', P .. ':due', due, key)
end

local function note_end(P, key, from, to, text)
  local outcome = P .. ':outcome:' .. key
  local lines = (call('HGET', outcome, '.ranges') or '') .. from .. ' ' .. to .. ' ' .. text .. '\n'
  local count = select(2, string.gsub(lines, '\n', '\n'))
  if count > 50 then lines = string.match(lines, '^[^\n]*\n(.*)$') end
  call('HSET', outcome, '.ranges', lines)
end

local function record(P, cfg, key, from, to, text, now)
  note_end(P, key, from, to, text)
  call('HDEL', P .. ':outcome:' .. key, '.claim')
  if call('EXISTS', P .. ':ctx:' .. key) == 0 then call('ZADD', P .. ':ended', now + cfg.receipt_ttl_ms, key) end
end

local function identities(hash)
  local ids = {}
  for _, field in ipairs(call('HKEYS', hash)) do
    if string.sub(field, 1, 2) == 'm:' then ids[#ids + 1] = string.sub(field, 3) end
  end
  return ids
end

local function sadd(set, ids)
  for i = 1, #ids, HSET_CHUNK do call('SADD', set, unpack(ids, i, math.min(i + HSET_CHUNK - 1, #ids))) end
end

local function claim_meta(P, id)
  local m = call('HMGET', P .. ':claim:' .. id, '.key', '.bucket', '.from', '.to', '.attempts', '.suspect', '.delays',
    '.owner', '.held')
  if not m[1] then return nil end
  return { key = m[1], bucket = m[2], from = m[3], to = m[4], attempts = tonumber(m[5]) or 0,
           suspect = m[6], delays = tonumber(m[7]) or 0, owner = m[8], held = tonumber(m[9]) or 0 }
end

local ASKED = { '.batch', '.sent', '.print', '.answer' }

-- The oldest messages of a key up to claim_tokens, or those that an answer is about, go into the claim; the rest stays pending,
-- and due.
local function split(P, ctx, claim, limit, last)
  local flat, rows, meta = call('HGETALL', ctx), {}, {}
  for i = 1, #flat, 2 do
    if string.sub(flat[i], 1, 2) == 'm:' then
      local order, seq, tokens = parts(flat[i + 1])
      rows[#rows + 1] = { flat[i], flat[i + 1], tonumber(order), tonumber(seq), tonumber(tokens) }
    elseif flat[i] ~= '.now' and flat[i] ~= '.parked' then
      meta[#meta + 1], meta[#meta + 2] = flat[i], flat[i + 1]
    end
  end
  table.sort(rows, function(a, b) return a[3] < b[3] end)
  local took, n = 0, 0
  local high
  for i, row in ipairs(rows) do
    if i > 1 and (took + row[5] > limit or row[3] > last) then break end
    took, n = took + row[5], i
  end
  local fields, gone = meta, {}
  for i = 1, n do
    fields[#fields + 1], fields[#fields + 2] = rows[i][1], rows[i][2]
    gone[i] = rows[i][1]
  end
  -- A push that only changed messages has a number, but no message of its own: it ends with those before the next number.
  local to = rows[n + 1] and math.max(rows[n][4], rows[n + 1][4] - 1) or call('HGET', ctx, '.to')
  for _, value in ipairs({ '.to', to, '.size', took }) do fields[#fields + 1] = value end
  hset(claim, fields)
  if n == #rows then
    call('DEL', ctx)
    return
  end
  for i = 1, #gone, HSET_CHUNK do call('HDEL', ctx, unpack(gone, i, math.min(i + HSET_CHUNK - 1, #gone))) end
  local rest = 0
  for i = n + 1, #rows do
    rest = rest + rows[i][5]
    high = math.min(high or rows[i][4], rows[i][4])
  end
  call('HSET', ctx, '.from', high, '.size', rest, '.tokens', rest)
  call('HDEL', ctx, unpack(ASKED)) -- that was about the oldest
end

local function take(P, cfg, key, meta, id, worker, now, answered)
  local ctx, claim = P .. ':ctx:' .. key, P .. ':claim:' .. id
  if answered then
    split(P, ctx, claim, math.huge, tonumber(call('HGET', ctx, '.sent')))
  elseif (tonumber(meta[3]) or 0) <= cfg.claim_tokens then
    call('RENAME', ctx, claim)
  else
    split(P, ctx, claim, cfg.claim_tokens, math.huge)
  end
  call('HSET', claim, '.key', key, '.worker', worker)
  if call('EXISTS', ctx) == 0 then call('ZREM', P .. ':due', key) end
  call('HSET', P .. ':busy', meta[1], id)
  call('ZADD', P .. ':claimed', now + cfg.lease_ms, id)
  call('HSET', P .. ':outcome:' .. key, '.claim', id, '.owner', meta[4], '.bucket', meta[1]) -- ctx held them until now
  if not answered and (cfg.total_day_tokens or 0) + (cfg.user_day_tokens or 0) > 0 then
    local held = math.min(tonumber(meta[3]) or 0, cfg.claim_tokens) + CALL_TOKENS
    call('HSET', claim, '.held', held)
    hold(P, meta[4], held)
  end
  return { id, call('HGETALL', claim) }
end

-- closed; open until a moment; probing (half-open, one claim is out to try); or half-open: one claim may be taken to try
local function breaker_state(P, endpoint, now)
  local b = call('HMGET', P .. ':breaker:' .. endpoint, 'until', 'probe_until')
  if not b[1] then return 'closed', now end
  if now < tonumber(b[1]) then return 'open', tonumber(b[1]) end
  if b[2] and now < tonumber(b[2]) then return 'probing', tonumber(b[2]) end
  return 'half-open', now
end

local FAILURES = 3 -- in a row, of a kind that may be the content's fault, until they are taken for an outage

local function trip(P, b, argv, now)
  local cfg = config(P)
  local code, kind = argv[3], argv[4]
  local asked, floor, jitter = tonumber(argv[5]), tonumber(argv[6]), tonumber(argv[7])
  local was = call('HMGET', b, 'until', 'delay')
  local failed = call('HINCRBY', b, 'failed', 1)
  -- Only the breaker can keep a pause longer than backoff_max: no key may be due later than that.
  local may_be_content = kind == 'maybe' and failed < FAILURES and asked <= cfg.backoff_max_ms
  if not was[1] and may_be_content then return { 'counted', 0, '' } end
  if was[1] and now < tonumber(was[1]) then -- a call that was on its way when the breaker opened
    if now + asked > tonumber(was[1]) then call('HSET', b, 'until', now + asked, 'wait', asked) end
    return { 'open', math.max(tonumber(was[1]), now + asked) - now, '' }
  end
  local delay = was[2] and math.min(was[2] * 2, cfg.backoff_max_ms) or cfg.backoff_ms
  delay = math.max(delay, floor)
  local wait = math.max(math.floor(delay * (0.5 + jitter / 2)), floor, asked)
  call('HSET', b, 'until', now + wait, 'wait', wait, 'delay', delay, 'code', code)
  call('HSETNX', b, 'opened', now)
  call('HDEL', b, 'probe', 'probe_until')
  call('SADD', P .. ':breakers', argv[1])
  if was[1] then return { 'open', wait, '' } end
  count(P, { 'outages', 1 })
  return { 'opened', wait, '' }
end

-- memd_breaker_1: KEYS P; ARGV endpoint, verb, ...: trip: code, outage or maybe, Retry-After in ms, least pause in ms, jitter 0-1;
-- close: claim that succeeded; free: claim that made no call -> { opened, open, counted, closed or ok, pause in ms, code }
local function memd_breaker(keys, argv)
  local P, now, b = keys[1], clock(), keys[1] .. ':breaker:' .. argv[1]
  if argv[2] == 'trip' then return trip(P, b, argv, now) end
  local was = call('HMGET', b, 'until', 'probe', 'code')
  if argv[2] == 'free' then
    if was[2] == argv[3] then call('HDEL', b, 'probe', 'probe_until') end
  elseif not was[1] then
    call('DEL', b)
  elseif was[2] == argv[3] then -- only the probe closes: a call from before the outage proves nothing
    call('DEL', b)
    wake(P)
    return { 'closed', 0, was[3] }
  end
  return { 'ok', 0, '' }
end

-- What this very call has taken already: a call whose reply was lost is sent again, with the same nonce. Without this the
-- second one would take other keys under the same ids, and the messages of the first ones would be gone.
local function taken_before(P, nonce, room)
  local ids, claims = {}, {}
  for i = 1, room do ids[i] = nonce .. '-' .. (i - 1) end
  for i, lease in ipairs(call('ZMSCORE', P .. ':claimed', unpack(ids))) do
    if lease then claims[#claims + 1] = { ids[i], call('HGETALL', P .. ':claim:' .. ids[i]) } end
  end
  return claims
end

-- memd_claim_1: KEYS P; ARGV room, holding, nonce, worker, endpoint; sent again it answers the same claims
-- -> { now, next due or -1, suspects waiting, state of the breaker, claim... }
local function memd_claim(keys, argv)
  local P, now = keys[1], clock()
  local cfg = config(P)
  local room, holding = tonumber(argv[1]), tonumber(argv[2])
  local before = taken_before(P, argv[3], room)
  if #before > 0 then
    local probing = call('HGET', P .. ':breaker:' .. argv[5], 'probe') == before[1][1]
    return { now, -1, 0, probing and 'half-open' or 'closed', unpack(before) }
  end
  local state, moment = breaker_state(P, argv[5], now)
  if state == 'open' or state == 'probing' then return { now, moment, 0, state } end
  if state == 'half-open' then room = 1 end
  local claims, suspects = {}, 0
  for _, row in ipairs({ 'rationed', 'batched' }) do
    for _, key in ipairs(call('ZRANGEBYSCORE', P .. ':' .. row, '-inf', now, 'LIMIT', 0, room + 256)) do rouse(P, row, key, now) end
  end
  for _, key in ipairs(call('ZRANGEBYSCORE', P .. ':due', '-inf', now, 'LIMIT', 0, room + 256)) do
    if #claims >= room then break end
    local meta = call('HMGET', P .. ':ctx:' .. key, '.bucket', '.suspect', '.size', '.owner', '.batch')
    local answered = meta[5] and call('HEXISTS', P .. ':ctx:' .. key, '.answer') == 1 -- and so paid for
    local broken = meta[1] and not answered and broke(P, cfg, meta[4], now)
    if not meta[1] then
      call('ZREM', P .. ':due', key)
    elseif call('HEXISTS', P .. ':busy', meta[1]) == 1 then
      local score = call('ZSCORE', P .. ':due', key)
      call('ZREM', P .. ':due', key)
      call('ZADD', P .. ':parked:' .. meta[1], score, key)
      call('HSET', P .. ':ctx:' .. key, '.parked', 1)
    elseif broken then
      rest(P, 'rationed', key, meta[1], broken, now)
    elseif meta[2] and holding + #claims > 0 then
      suspects = suspects + 1
    else
      claims[#claims + 1] = take(P, cfg, key, meta, argv[3] .. '-' .. #claims, argv[4], now, answered)
      if meta[2] then break end -- a suspect is worked on alone
    end
  end
  if state == 'half-open' and #claims > 0 then
    call('HSET', P .. ':breaker:' .. argv[5], 'probe', claims[1][1], 'probe_until', now + cfg.lease_ms)
  end
  local ahead = call('ZRANGE', P .. ':due', 0, 0, 'WITHSCORES')
  return { now, tonumber(ahead[2]) or -1, suspects, state, unpack(claims) }
end

-- memd_extend_1: KEYS P; ARGV claim... -> 1 or 0 for each: ours still, or lost
local function memd_extend(keys, argv)
  local P, now, held = keys[1], clock(), {}
  local lease = tonumber(call('HGET', P .. ':config', 'lease_ms'))
  for i, id in ipairs(argv) do
    held[i] = call('ZSCORE', P .. ':claimed', id) and 1 or 0
    if held[i] == 1 then call('ZADD', P .. ':claimed', 'XX', now + lease, id) end
  end
  return held
end

local function close(P, id, m, now)
  if m.held > 0 then hold(P, m.owner, -m.held) end
  call('ZREM', P .. ':claimed', id)
  free_bucket(P, m.bucket, id, now)
end

-- memd_ack_1: KEYS P; ARGV claim, record, stat, n, stat, n... -> 1, or 0 when the claim is not there any more
local function memd_ack(keys, argv)
  local P, id, now = keys[1], argv[1], clock()
  local m = claim_meta(P, id)
  if not m then return 0 end
  local cfg = config(P)
  local newer, _, ttl = known_sets(P, cfg, m.key, now)
  sadd(newer, identities(P .. ':claim:' .. id))
  call('PEXPIRE', newer, ttl) -- not a moment longer than it is read: forget removes the two that are
  call('DEL', P .. ':claim:' .. id)
  record(P, cfg, m.key, m.from, m.to, argv[2], now)
  local stats = { unpack(argv, 3) }
  count(P, stats)
  spend(P, cfg, m.owner, stats, now)
  close(P, id, m, now)
  return 1
end

-- What gave up becomes a letter: its messages with the reason. `dead` holds the fields of its claim already.
local function entomb(P, letter, key, code, err, now)
  local dead = P .. ':dead:' .. letter
  local died = P .. ':died:' .. key
  sadd(died, identities(dead))
  call('PERSIST', died)
  call('HSET', dead, '.code', code, '.error', err, '.died', now)
  call('ZADD', P .. ':dead', now, letter)
  call('HINCRBY', P .. ':outcome:' .. key, '.letters', 1)
end

local function bury(P, cfg, id, m, code, err, text, now)
  call('RENAME', P .. ':claim:' .. id, P .. ':dead:' .. id)
  call('HDEL', P .. ':dead:' .. id, unpack(ASKED))
  entomb(P, id, m.key, code, err, now)
  record(P, cfg, m.key, m.from, m.to, text, now)
  count(P, { 'dead', m.to - m.from + 1, 'dead:' .. code, m.to - m.from + 1 })
  close(P, id, m, now)
end

-- memd_part_1: KEYS P; ARGV claim, code, error, record, identity... -> how many of the claim's messages went to the dead.
-- The rest stays claimed: a batch was halved until the guilty were alone.
local function memd_part(keys, argv)
  local P, id, now = keys[1], argv[1], clock()
  local m = claim_meta(P, id)
  if not m then return 0 end
  local claim, fields, names, low, high = P .. ':claim:' .. id, {}, {}, nil, nil
  for i = 5, #argv do
    local name = 'm:' .. argv[i]
    local value = call('HGET', claim, name)
    if value then
      local seq = tonumber((select(2, parts(value))))
      low, high = math.min(low or seq, seq), math.max(high or seq, seq)
      names[#names + 1] = name
      fields[#fields + 1], fields[#fields + 2] = name, value
    end
  end
  if #names == 0 then return 0 end
  local letter = id .. '-' .. string.sub(names[1], 4, 11)
  local meta = { '.key', '.thread', '.user', '.agent', '.bucket', '.owner', '.gen', '.first', '.last', '.attempts' }
  for i, value in ipairs(call('HMGET', claim, unpack(meta))) do
    if value then fields[#fields + 1], fields[#fields + 2] = meta[i], value end
  end
  for _, value in ipairs({ '.from', low, '.to', high }) do fields[#fields + 1] = value end
  hset(P .. ':dead:' .. letter, fields)
  for i = 1, #names, HSET_CHUNK do call('HDEL', claim, unpack(names, i, math.min(i + HSET_CHUNK - 1, #names))) end
  entomb(P, letter, m.key, argv[2], argv[3], now)
  note_end(P, m.key, low, high, argv[4])
  count(P, { 'dead', high - low + 1, 'dead:' .. argv[2], high - low + 1 })
  return #names
end

-- One message back into a key that has got new ones. Of a message that was sent again meanwhile the newest text stays, at its
-- old place. Answers the tokens that this adds.
local function put_message_back(ctx, field, value)
  if call('HSETNX', ctx, field, value) == 1 then return tonumber((select(3, parts(value)))) end
  local order, seq, _, signals = parts(value)
  local _, _, tokens, newer, text = parts(call('HGET', ctx, field))
  call('HSET', ctx, field, order .. ' ' .. seq .. ' ' .. tokens .. ' ' .. union(signals, newer) .. ' ' .. text)
  return 0
end

local KEPT = { ['.urgent'] = true, ['.batch'] = true, ['.sent'] = true, ['.print'] = true, ['.answer'] = true }

-- The messages of a claim or of a letter go back before what came since: they keep their order, and the newest text of an
-- id stays.
local function put_back(P, source, key, changes)
  local ctx = P .. ':ctx:' .. key
  if call('EXISTS', ctx) == 0 then
    call('RENAME', source, ctx)
    call('HDEL', ctx, '.key', '.worker', '.now', '.suspect', '.parked', '.held', '.code', '.error', '.died')
  else
    local flat, size, tokens = call('HGETALL', source), 0, nil
    for i = 1, #flat, 2 do
      if string.sub(flat[i], 1, 2) == 'm:' then
        size = size + put_message_back(ctx, flat[i], flat[i + 1])
      elseif flat[i] == '.first' or flat[i] == '.from' then
        local now_there = tonumber((call('HGET', ctx, flat[i])))
        call('HSET', ctx, flat[i], math.min(now_there or math.huge, tonumber(flat[i + 1])))
      elseif flat[i] == '.tokens' then
        tokens = tonumber(flat[i + 1])
      elseif KEPT[flat[i]] then
        call('HSET', ctx, flat[i], flat[i + 1])
      end
    end
    call('HINCRBY', ctx, '.size', size)
    call('HINCRBY', ctx, '.tokens', math.min(size, tokens or size))
    call('DEL', source)
  end
  hset(ctx, changes)
  return call('HGET', ctx, '.parked')
end

local function give_back(P, id, m, changes, now)
  put_back(P, P .. ':claim:' .. id, m.key, changes)
  call('HDEL', P .. ':outcome:' .. m.key, '.claim')
  -- It waits for its own time now: as the one key that the free bucket brings back, it would keep the others parked.
  call('ZREM', P .. ':parked:' .. m.bucket, m.key)
  for _, row in ipairs({ 'rationed', 'batched' }) do call('ZREM', P .. ':' .. row, m.key) end
  call('HDEL', P .. ':ctx:' .. m.key, '.parked')
  close(P, id, m, now)
end

-- memd_release_1: KEYS P; ARGV claim, how (failed: costs an attempt, paused: costs none, expired: the lease ran out),
-- backoff in ms, code, error, record for the case that it is buried, stat, n... -> released, dead, or lost
local function memd_release(keys, argv)
  local P, id, how, now = keys[1], argv[1], argv[2], clock()
  local m = claim_meta(P, id)
  if not m then
    call('ZREM', P .. ':claimed', id)
    return 'lost'
  end
  local cfg = config(P)
  if how == 'expired' then
    local lease = tonumber(call('ZSCORE', P .. ':claimed', id))
    if lease and lease > now then return 'lost' end -- extended meanwhile
  end
  local stats = { unpack(argv, 7) }
  count(P, stats)
  spend(P, cfg, m.owner, stats, now)
  local costs = how == 'failed' or (how == 'expired' and m.suspect)
  local attempts = m.attempts + (costs and 1 or 0)
  if costs and attempts >= cfg.max_attempts then
    call('HSET', P .. ':claim:' .. id, '.attempts', attempts)
    bury(P, cfg, id, m, argv[4], argv[5], argv[6], now)
    return 'dead'
  end
  local after = now + tonumber(argv[3])
  local delays = costs and 0 or m.delays + 1
  local changes = { '.attempts', attempts, '.delays', delays, '.after', after }
  if how == 'expired' then changes[#changes + 1], changes[#changes + 2] = '.suspect', 1 end
  give_back(P, id, m, changes, now)
  if how == 'failed' then call('HDEL', P .. ':ctx:' .. m.key, unpack(ASKED)) end -- an answer that did not do is not tried again
  set_due(P, m.key, m.bucket, nil, after, now, cfg.tick_ms)
  count(P, { 'released:' .. how, 1 })
  return 'released'
end

-- memd_bury_1: KEYS P; ARGV claim, code, error, record, stat, n... -> 1, or 0 when the claim is not there any more
local function memd_bury(keys, argv)
  local P, id, now = keys[1], argv[1], clock()
  local m = claim_meta(P, id)
  if not m then return 0 end
  local cfg, stats = config(P), { unpack(argv, 5) }
  count(P, stats)
  spend(P, cfg, m.owner, stats, now)
  bury(P, cfg, id, m, argv[2], argv[3], argv[4], now)
  return 1
end

-- memd_defer_1: KEYS P; ARGV claim, batch, endpoint, what was asked -> 1, or 0 when the claim is not there any more.
-- The claim's request is in a batch: its messages are pending again, its bucket is free, and the key waits for the answer;
-- but not if it was flushed meanwhile.
local function memd_defer(keys, argv)
  local P, id, now = keys[1], argv[1], clock()
  local m = claim_meta(P, id)
  if not m then return 0 end
  local cfg, batch, sent = config(P), P .. ':batch:' .. argv[2], 0
  local flat = call('HGETALL', P .. ':claim:' .. id)
  for i = 1, #flat, 2 do
    if string.sub(flat[i], 1, 2) == 'm:' then sent = math.max(sent, tonumber((parts(flat[i + 1])))) end
  end
  call('HSET', batch, id, m.key .. ' ' .. m.owner .. ' ' .. m.held, '.at', argv[3])
  call('HSETNX', batch, '.made', now)
  call('ZADD', P .. ':batches', 'NX', now + (cfg.batch_poll_ms or POLL_MS), argv[2])
  m.held = 0 -- what is held back for it stays so until it is answered
  local asked = { '.attempts', m.attempts, '.delays', m.delays, '.batch', id, '.sent', sent, '.print', argv[4] }
  give_back(P, id, m, asked, now)
  call('HDEL', P .. ':ctx:' .. m.key, '.answer')
  if call('HEXISTS', P .. ':ctx:' .. m.key, '.urgent') == 1 then
    set_due(P, m.key, m.bucket, nil, now, now, cfg.tick_ms)
  else
    rest(P, 'batched', m.key, m.bucket, now + BATCH_MS, now)
  end
  count(P, { 'deferred', 1 })
  return 1
end

-- A request that was not answered, through no fault of its content: asked anew, at no attempt. After a day's waiting (urgent) not
-- in a batch again.
local function again(P, cfg, key, jitter, urgent, now)
  local ctx = P .. ':ctx:' .. key
  local m = call('HMGET', ctx, '.delays', '.parked')
  local delays = tonumber(m[1]) or 0
  local wait = math.floor(math.min(cfg.backoff_max_ms, cfg.backoff_ms * 2 ^ math.min(delays, 30)) * (0.5 + jitter / 2))
  call('HDEL', ctx, unpack(ASKED))
  call('HSET', ctx, '.delays', delays + 1)
  if urgent then call('HSET', ctx, '.urgent', 1) end
  if m[2] == 'batched' then
    call('HSET', ctx, '.after', now + wait)
    rouse(P, 'batched', key, now + wait)
  end
  count(P, { 'released:batch', 1 })
end

-- Settles one request of a batch: its answer goes to its key, if that still waits for it.
local function settle(P, cfg, batch, id, argv, now)
  local row = call('HGET', batch, id)
  if not row then return 'unknown' end
  local key, owner, held = string.match(row, '^(%S+) (%S+) (%d+)$')
  local ctx, found = P .. ':ctx:' .. key, 'unused'
  if call('HGET', ctx, '.batch') == id then
    found = 'taken'
    if argv[3] == 'take' then
      call('HSET', ctx, '.answer', argv[4])
      local parked = call('HGET', ctx, '.parked')
      if parked == 'batched' or parked == 'rationed' then -- it is paid for: no budget keeps it
        rouse(P, parked, key, now)
        wake(P)
      end
    else
      again(P, cfg, key, tonumber(argv[4]), argv[5] == '1', now)
    end
  else
    local stats = { unpack(argv, argv[3] == 'take' and 5 or 6) }
    count(P, { 'unused_answers', 1 })
    count(P, stats)
    spend(P, cfg, call('EXISTS', P .. ':user:' .. owner) == 1 and owner, stats, now)
  end
  call('HDEL', batch, id)
  if tonumber(held) > 0 then hold(P, owner, -held) end
  return found
end

local function close_batch(P, id)
  if call('HLEN', P .. ':batch:' .. id) > 2 then return end -- but for .made and .at
  call('DEL', P .. ':batch:' .. id)
  call('ZREM', P .. ':batches', id)
end

local function requests(batch)
  local ids = {}
  for _, field in ipairs(call('HKEYS', batch)) do
    if string.sub(field, 1, 1) ~= '.' then ids[#ids + 1] = field end
  end
  return ids
end

-- memd_answer_1: KEYS P; ARGV batch, request or "" for all that are left, then one of
--   take, answer, stat, n... (counted only when nobody waits for the answer any more)  |  again, jitter 0-1, 1 if urgent
-- -> taken, unused, or unknown (of all: how many)
local function memd_answer(keys, argv)
  local P, batch, now = keys[1], keys[1] .. ':batch:' .. argv[1], clock()
  local cfg, found = config(P), 0
  if argv[2] ~= '' then
    found = settle(P, cfg, batch, argv[2], argv, now)
  else
    for _, id in ipairs(requests(batch)) do
      settle(P, cfg, batch, id, argv, now)
      found = found + 1
    end
  end
  close_batch(P, argv[1])
  return found
end

-- memd_poll_1: KEYS P; ARGV endpoint, limit, jitter 0-1 -> { batch, ms since it was made, requests that keys wait for }...
-- Those of this endpoint that are to be asked for now; others leave them alone for a while. What is too old is given up.
local function memd_poll(keys, argv)
  local P, now, rows = keys[1], clock(), {}
  local cfg = config(P)
  for _, id in ipairs(call('ZRANGEBYSCORE', P .. ':batches', '-inf', now, 'LIMIT', 0, argv[2])) do
    local batch = P .. ':batch:' .. id
    local m = call('HMGET', batch, '.made', '.at')
    local age = now - (tonumber(m[1]) or 0)
    if age > BATCH_MS then
      for _, request in ipairs(requests(batch)) do settle(P, cfg, batch, request, { '', '', 'again', argv[3], '1' }, now) end
      close_batch(P, id)
    else
      -- the older it is, the less often it is asked for
      local least = cfg.batch_poll_ms or POLL_MS
      local pause = math.min(math.max(least, age / 10), 10 * least)
      call('ZADD', P .. ':batches', math.floor(now + pause), id)
      if m[2] == argv[1] then
        local wanted = 0
        for _, request in ipairs(requests(batch)) do
          local key = string.match(call('HGET', batch, request), '^%S+')
          if call('HGET', P .. ':ctx:' .. key, '.batch') == request then wanted = wanted + 1 end
        end
        rows[#rows + 1] = { id, age, wanted }
      end
    end
  end
  return rows
end

-- A letter is not dead any more: without the record of its end, its receipts tell what becomes of it now.
local function strike(P, key, from, to)
  local outcome, kept = P .. ':outcome:' .. key, {}
  for line in string.gmatch(call('HGET', outcome, '.ranges') or '', '[^\n]+') do
    local a, b, text = string.match(line, '^(%d+) (%d+) (.*)$')
    if not (a == from and b == to and string.find(text, '"state":"dead"', 1, true)) then kept[#kept + 1] = line .. '\n' end
  end
  call('HSET', outcome, '.ranges', table.concat(kept))
end

local function retry(P, cfg, letter, now)
  local dead = P .. ':dead:' .. letter
  local m = call('HMGET', dead, '.key', '.bucket', '.owner', '.from', '.to', '.code', '.raw', '.origin')
  local raw, list = m[7], m[8]
  call('ZREM', P .. ':dead', letter)
  if raw then -- never taken in: the scheduler looks at it again, first of all
    call('LPUSH', list, raw)
    call('DEL', dead)
  elseif m[1] then
    local key, ids = m[1], identities(dead)
    for i = 1, #ids, HSET_CHUNK do call('SREM', P .. ':died:' .. key, unpack(ids, i, math.min(i + HSET_CHUNK - 1, #ids))) end
    strike(P, key, m[4], m[5])
    call('HINCRBY', P .. ':outcome:' .. key, '.letters', -1)
    local parked = put_back(P, dead, key, { '.attempts', 0, '.delays', 0, '.after', 0 })
    call('HDEL', P .. ':ctx:' .. key, '.suspect')
    call('SADD', P .. ':user:' .. m[3], key)
    set_due(P, key, m[2], parked, now, now, cfg.tick_ms)
    count(P, { 'dead', m[4] - m[5] - 1, 'dead:' .. m[6], m[4] - m[5] - 1 })
  else
    return 0
  end
  count(P, { 'retried', 1 })
  return 1
end

-- memd_retry_1: KEYS P; ARGV letter... -> how many of the dead are pending again, in their old places
local function memd_retry(keys, argv)
  local cfg, now, done = config(keys[1]), clock(), 0
  for _, letter in ipairs(argv) do done = done + retry(keys[1], cfg, letter, now) end
  return done
end

local function drop(P, cfg, letter, now)
  local dead = P .. ':dead:' .. letter
  local key = call('HGET', dead, '.key')
  call('ZREM', P .. ':dead', letter)
  if key and call('HINCRBY', P .. ':outcome:' .. key, '.letters', -1) <= 0 then
    -- pushed again in the meantime, what was thrown away is still known to have died
    call('PEXPIRE', P .. ':died:' .. key, cfg.receipt_ttl_ms)
    call('ZADD', P .. ':ended', now + cfg.receipt_ttl_ms, key)
  end
  return call('DEL', dead)
end

-- memd_drop_1: KEYS P; ARGV letter... -> how many of the dead were thrown away
local function memd_drop(keys, argv)
  local cfg, now, done = config(keys[1]), clock(), 0
  for _, letter in ipairs(argv) do done = done + drop(keys[1], cfg, letter, now) end
  if done > 0 then count(keys[1], { 'dropped', done }) end
  return done
end

local FORGET_PAGE = 100

-- What a key of a user holds: { bucket, pushes under way, identity... }
local function traces(P, cfg, key, now)
  local outcome = call('HMGET', P .. ':outcome:' .. key, '.bucket', '.claim')
  local found, pushes, bucket = {}, 0, outcome[1]
  local hashes = { P .. ':ctx:' .. key }
  if outcome[2] then hashes[2] = P .. ':claim:' .. outcome[2] end
  for _, hash in ipairs(hashes) do
    local m = call('HMGET', hash, '.from', '.to', '.bucket')
    if m[1] then
      pushes, bucket = pushes + m[2] - m[1] + 1, m[3]
      for _, identity in ipairs(identities(hash)) do found[#found + 1] = identity end
    end
  end
  local newer, older = known_sets(P, cfg, key, now)
  for _, set in ipairs({ newer, older, P .. ':died:' .. key }) do
    for _, identity in ipairs(call('SMEMBERS', set)) do found[#found + 1] = identity end
  end
  return bucket, pushes, found
end

-- Reads, or with `remove` takes away, one page of a user's keys
local function forget(P, argv, remove)
  local owner, wanted, now, cfg = argv[1], argv[2], clock(), config(P)
  local page = call('SSCAN', P .. ':user:' .. owner, argv[3], 'COUNT', FORGET_PAGE)
  local answer, under_way = { page[1], 0 }, 0
  for _, key in ipairs(page[2]) do
    local bucket, pushes, found = traces(P, cfg, key, now)
    if wanted == '' or wanted == bucket then
      under_way = under_way + pushes
      for _, identity in ipairs(found) do answer[#answer + 1] = identity end
      if remove then remove(P, cfg, owner, key, bucket, now) end
    end
  end
  answer[2] = under_way
  if remove and wanted == '' then -- how much the user has talked on these days is a trace, too
    for day = math.floor(now / DAY) - 1, math.floor(now / DAY) do call('HDEL', P .. ':spent:' .. day, owner) end
  end
  if remove and under_way > 0 then count(P, { 'forgotten', under_way }) end
  return answer
end

local function forget_key(P, cfg, owner, key, bucket, now)
  local id = call('HGET', P .. ':outcome:' .. key, '.claim')
  local m = id and claim_meta(P, id)
  call('ZREM', P .. ':due', key)
  for _, row in ipairs({ 'rationed', 'batched' }) do call('ZREM', P .. ':' .. row, key) end
  if bucket then call('ZREM', P .. ':parked:' .. bucket, key) end
  local newer, older = known_sets(P, cfg, key, now)
  call('DEL', P .. ':ctx:' .. key, newer, older, P .. ':known:' .. key, P .. ':died:' .. key, P .. ':outcome:' .. key) -- and as builds before 6 called it
  call('ZREM', P .. ':ended', key)
  call('SREM', P .. ':user:' .. owner, key)
  if m then -- last, as freeing the bucket moves the next key of the row up
    call('DEL', P .. ':claim:' .. id)
    close(P, id, m, now)
  end
end

-- memd_traces_1: KEYS P; ARGV owner, bucket or "" for all, cursor -> { cursor, pushes under way, identity... }: one page
local function memd_traces(keys, argv) return forget(keys[1], argv, nil) end

-- memd_forget_1: the same, and what it names is gone. The dead are dropped by their letters.
local function memd_forget(keys, argv) return forget(keys[1], argv, forget_key) end

-- memd_tombstone_1: KEYS P; ARGV owner, salt, hash... -> 1: these salted hashes are skipped as forgotten from now on
local function memd_tombstone(keys, argv)
  local tomb, fields = keys[1] .. ':forgotten:' .. argv[1], { '.salt', argv[2] }
  for i = 3, #argv do fields[#fields + 1], fields[#fields + 2] = argv[i], 1 end
  hset(tomb, fields)
  return 1
end

local function clamp(set, limit, to)
  local late = call('ZRANGEBYSCORE', set, '(' .. limit, '+inf', 'LIMIT', 0, HSET_CHUNK)
  for _, member in ipairs(late) do call('ZADD', set, to, member) end
  return #late
end

-- memd_rebase_1: KEYS P -> how many times were mended. A clock that was set back leaves times far ahead: nothing may be due
-- later than the longest pause from now, no lease may end later than one lease from now.
local function memd_rebase(keys)
  local P, now = keys[1], clock()
  local cfg = config(P)
  local mended = clamp(P .. ':due', now + math.max(cfg.max_wait_ms, cfg.backoff_max_ms), now + cfg.quiet_ms)
    + clamp(P .. ':rationed', day_end(now), day_end(now))
    + clamp(P .. ':batched', now + BATCH_MS, now + BATCH_MS)
    + clamp(P .. ':batches', now + 10 * (cfg.batch_poll_ms or POLL_MS), now + (cfg.batch_poll_ms or POLL_MS))
    + clamp(P .. ':claimed', now + cfg.lease_ms, now + cfg.lease_ms)
    + clamp(P .. ':ended', now + cfg.receipt_ttl_ms, now + cfg.receipt_ttl_ms)
  for _, endpoint in ipairs(call('SMEMBERS', P .. ':breakers')) do
    local b = P .. ':breaker:' .. endpoint
    local m = call('HMGET', b, 'until', 'wait', 'probe_until')
    if m[1] and m[2] and tonumber(m[1]) > now + m[2] then
      call('HSET', b, 'until', now + m[2])
      mended = mended + 1
    end
    if m[3] and tonumber(m[3]) > now + cfg.lease_ms then call('HSET', b, 'probe_until', now + cfg.lease_ms) end
  end
  if mended > 0 then wake(P) end
  return mended
end

-- memd_take_1: KEYS P, raw list; ARGV sha1 of the expected head, then one of
--   push, header, message...  |  dead, id, code, error  |  skip, reason, counter, n...
-- -> taken, or moved when the head is another one by now
local function memd_take(keys, argv)
  local P, list = keys[1], keys[2]
  local head = call('LINDEX', list, 0)
  if not head or redis.sha1hex(head) ~= argv[1] then return 'moved' end
  local now = clock()
  if argv[2] == 'push' then
    local cfg, h = config(P), header(argv[3])
    local wrong = shape_error(cfg, h, argv, 4)
    if wrong then return redis.error_reply('MEMDREJECTED ' .. wrong) end
    local answer = merge(P, cfg, h, argv, 4)
    if answer[1] == 'skipped' then count(P, { 'skipped', 1, 'skipped:' .. answer[7], 1 }) end
  elseif argv[2] == 'dead' then
    call('HSET', P .. ':dead:' .. argv[3], '.code', argv[4], '.error', argv[5], '.died', now, '.raw', head, '.origin', list)
    call('ZADD', P .. ':dead', now, argv[3])
    count(P, { 'dead', 1, 'dead:' .. argv[4], 1 })
  else
    count(P, { 'skipped', 1, 'skipped:' .. argv[3], 1, unpack(argv, 4) })
  end
  call('LPOP', list)
  call('HINCRBY', P .. ':taken', list, 1)
  return 'taken'
end

-- Makes one pending key due now, or as soon as its budget allows; answers { key, gen, seq } of what was accepted before, or nil
-- when nothing is under way.
local function flush_key(P, cfg, key, filter, now)
  local ctx = P .. ':ctx:' .. key
  local m = call('HMGET', ctx, '.bucket', '.parked', '.gen', '.to', '.thread', '.user', '.agent', '.owner')
  if m[1] then
    for i, wanted in ipairs(filter) do
      if wanted ~= cjson.null and wanted ~= m[4 + i] then return nil end
    end
    call('HSET', ctx, '.now', 1, '.urgent', 1, '.after', 0)
    local waits = (m[2] == 'rationed' or m[2] == 'batched') and m[2]
    local broken = m[2] ~= '1' and broke(P, cfg, m[8], now)
    if waits and not (broken and waits == 'rationed') then
      rouse(P, waits, key, now)
      m[2] = false
    end
    if broken then
      rest(P, 'rationed', key, m[1], broken, now)
      return { key, m[3], m[4] }
    end
    local row = m[2] and P .. ':parked:' .. m[1] or P .. ':due'
    local was = tonumber(call('ZSCORE', row, key))
    set_due(P, key, m[1], m[2], math.min(was or now, now), now, cfg.tick_ms) -- what is due keeps its place in the row
    return { key, m[3], m[4] }
  end
  local id = call('HGET', P .. ':outcome:' .. key, '.claim')
  if not id then return nil end
  m = call('HMGET', P .. ':claim:' .. id, '.gen', '.to', '.thread', '.user', '.agent')
  for i, wanted in ipairs(filter) do
    if wanted ~= cjson.null and wanted ~= m[2 + i] then return nil end
  end
  return m[1] and { key, m[1], m[2] }
end

-- memd_flush_1: KEYS P; ARGV source (keys, user, due, rationed, batched, claimed), cursor, filter [thread, user, agent] with
-- null for any, and for keys: key hashes; for user: the hash of the user -> { cursor, { key, gen, seq }... }; at most some 1,000 keys a call
local function memd_flush(keys, argv)
  local P, source, cursor, now = keys[1], argv[1], argv[2], clock()
  local filter, cfg = cjson.decode(argv[3]), config(P)
  local found, step = {}, 1
  if source == 'keys' then
    found, cursor = { unpack(argv, 4) }, '0'
  else
    local page
    if source == 'user' then
      page = call('SSCAN', P .. ':user:' .. argv[4], cursor, 'COUNT', 1000)
    else
      page, step = call('ZSCAN', P .. ':' .. source, cursor, 'COUNT', 1000), 2
    end
    cursor, found = page[1], page[2]
  end
  local noted, looked = { cursor }, {}
  for i = 1, #found, step do
    local key, place = found[i], P .. ':ctx:' .. found[i]
    if source == 'claimed' then
      place = P .. ':claim:' .. found[i]
      key = call('HGET', place, '.key')
    end
    local note = key and flush_key(P, cfg, key, filter, now)
    if note then noted[#noted + 1] = note end
    local bucket = step == 2 and call('HGET', place, '.bucket')
    if bucket and not looked[bucket] then
      -- others of its bucket may wait in the row, until this one has ended or, when the bucket is free, until it is claimed
      looked[bucket] = true
      for _, other in ipairs(call('ZRANGE', P .. ':parked:' .. bucket, 0, 999)) do
        local waiting = other ~= key and flush_key(P, cfg, other, filter, now)
        if waiting then noted[#noted + 1] = waiting end
      end
    end
  end
  return noted
end

-- memd_receipt_1: KEYS P; ARGV key... -> for each { gen, pending from, to, due, claimed from, to, ranges }, "" for what is not there
local function memd_receipt(keys, argv)
  local P, answers = keys[1], {}
  for i, key in ipairs(argv) do
    local o = call('HMGET', P .. ':outcome:' .. key, '.gen', '.claim', '.ranges')
    local c = call('HMGET', P .. ':ctx:' .. key, '.from', '.to')
    local due = c[1] and (call('ZSCORE', P .. ':due', key) or call('ZSCORE', P .. ':rationed', key))
    local taken = o[2] and call('HMGET', P .. ':claim:' .. o[2], '.from', '.to') or {}
    answers[i] = { o[1] or '', c[1] or '', c[2] or '', due or '', taken[1] or '', taken[2] or '', o[3] or '' }
  end
  return answers
end

local PENDING_BYTES = 262144 -- of one answer: more than any prompt takes

-- The messages of one context or claim; a large one is read piece by piece, so that the server is never held up
local function read_messages(P, hash, argv, answer, seen, room)
  local m = call('HMGET', hash, '.bucket', '.thread')
  local wanted = false
  for i = 3, #argv do wanted = wanted or argv[i] == m[1] end
  if not wanted then return room end
  local cursor = '0'
  repeat
    local page = call('HSCAN', hash, cursor, 'COUNT', 100)
    cursor = page[1]
    for i = 1, #page[2], 2 do
      local field, value = page[2][i], page[2][i + 1]
      if string.sub(field, 1, 2) == 'm:' and not seen[hash .. field] and room > 0 then
        seen[hash .. field] = true
        room = room - #value
        answer[#answer + 1] = { m[1], m[2], string.sub(field, 3), value }
      end
    end
  until cursor == '0' or room <= 0
  return room
end

-- memd_pending_1: KEYS P; ARGV owner, cursor, bucket... -> { cursor, { bucket, thread, identity, value }... }: the messages of
-- these buckets that are pending or claimed, of one page of the user's keys and in no order; the cursor is 0 at the end, or
-- when one answer would grow too large
local function memd_pending(keys, argv)
  local P, room, seen = keys[1], PENDING_BYTES, {}
  local page = call('SSCAN', P .. ':user:' .. argv[1], argv[2], 'COUNT', 500)
  local answer = { page[1] }
  for _, key in ipairs(page[2]) do
    local id = call('HGET', P .. ':outcome:' .. key, '.claim')
    if id then room = read_messages(P, P .. ':claim:' .. id, argv, answer, seen, room) end
    room = read_messages(P, P .. ':ctx:' .. key, argv, answer, seen, room)
    if room <= 0 then
      answer[1] = '0'
      break
    end
  end
  return answer
end

-- memd_tick_1: KEYS P; ARGV grace in ms, limit, endpoint -> { now, keys due, and batches to ask for, for longer than grace, ms of
-- the next one that will be or -1, ms of the next lease end or -1, claims whose lease ran out... }
local function memd_tick(keys, argv)
  local P, now = keys[1], clock()
  local edge = now - tonumber(argv[1])
  local waiting, ahead = 0, nil
  for _, row in ipairs({ 'due', 'rationed', 'batched', 'batches' }) do
    waiting = waiting + call('ZCOUNT', P .. ':' .. row, '-inf', edge)
    local next_one = tonumber(call('ZRANGEBYSCORE', P .. ':' .. row, '(' .. edge, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2])
    if next_one then ahead = math.min(ahead or next_one, next_one) end
  end
  local expired = call('ZRANGEBYSCORE', P .. ':claimed', '-inf', now, 'LIMIT', 0, argv[2])
  local lease = call('ZRANGE', P .. ':claimed', 0, 0, 'WITHSCORES')
  local state, moment = breaker_state(P, argv[3], now)
  if state == 'half-open' then waiting = math.min(waiting, 1) end
  if state == 'open' or state == 'probing' then return { now, 0, moment, tonumber(lease[2]) or -1, unpack(expired) } end
  return { now, waiting, ahead and ahead - edge + now or -1, tonumber(lease[2]) or -1, unpack(expired) }
end

-- memd_sweep_1: KEYS P; ARGV limit -> how many outcomes were forgotten because their time is over
local function memd_sweep(keys, argv)
  local P, now, swept = keys[1], clock(), 0
  for _, key in ipairs(call('ZRANGEBYSCORE', P .. ':ended', '-inf', now, 'LIMIT', 0, argv[1])) do
    local m = call('HMGET', P .. ':outcome:' .. key, '.claim', '.letters')
    local busy = call('EXISTS', P .. ':ctx:' .. key) > 0 or m[1] or (tonumber(m[2]) or 0) > 0
    if not busy then
      local owner = call('HGET', P .. ':outcome:' .. key, '.owner')
      if owner then call('SREM', P .. ':user:' .. owner, key) end
      call('DEL', P .. ':outcome:' .. key)
      swept = swept + 1
    end
    call('ZREM', P .. ':ended', key)
  end
  return swept
end

-- memd_full_1: KEYS P; ARGV 1 or 0: closes the trusted door near the memory limit, or opens it
local function memd_full(keys, argv)
  call('HSET', keys[1] .. ':config', 'full', argv[1])
  return 1
end

-- Drain functions run while the server is at its memory limit: what they do makes room.
local function register(name, callback, flags)
  redis.register_function { function_name = name .. '_1', callback = callback, flags = flags or { 'allow-oom' } }
end

register('memd_claim', memd_claim)
register('memd_extend', memd_extend)
register('memd_ack', memd_ack)
register('memd_release', memd_release)
register('memd_bury', memd_bury)
register('memd_part', memd_part)
register('memd_defer', memd_defer)
register('memd_answer', memd_answer)
register('memd_poll', memd_poll)
register('memd_retry', memd_retry)
register('memd_drop', memd_drop)
register('memd_forget', memd_forget)
register('memd_traces', memd_traces, { 'no-writes' })
register('memd_pending', memd_pending, { 'no-writes' })
register('memd_tombstone', memd_tombstone)
register('memd_rebase', memd_rebase)
register('memd_take', memd_take)
register('memd_flush', memd_flush)
register('memd_sweep', memd_sweep)
register('memd_full', memd_full)
register('memd_breaker', memd_breaker)
register('memd_tick', memd_tick, { 'no-writes' })
register('memd_receipt', memd_receipt, { 'no-writes' })
