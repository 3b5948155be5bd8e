-- Flushing keys, and what becomes of a push.

do -- none of these names is for other files: a library may have 200 local names

-- filter: thread, user, agent; null for any
local function matches(filter, ids)
  for i, value in ipairs(filter) do
    if value ~= cjson.null and value ~= ids[i] then return false end
  end
  return true
end

-- Makes one pending key due now, or as soon as its budget allows; a key that is due already keeps its place.
local function make_due(P, cfg, key, bucket, parked, owner, now)
  call('HSET', P .. ':ctx:' .. key, '.now', 1, '.urgent', 1, '.after', 0)
  local aside = (parked == 'rationed' or parked == 'batched') and parked
  local moment = parked ~= '1' and waits_until(P, cfg, key, owner, now)
  if aside and not (moment and aside == 'rationed') then
    bring_back(P, aside, key, now)
    parked = false
  end
  if moment then
    set_aside(P, 'rationed', key, bucket, moment, now)
    return
  end
  local due = tonumber(call('ZSCORE', P .. ':' .. row_of(bucket, parked), key))
  set_due(P, key, bucket, parked, math.min(due or now, now), now, cfg.tick_ms)
end

-- Flushes one key -> { key, gen, seq } of what was accepted so far, or nil when nothing that matches is under way
local function flush_key(P, cfg, key, filter, now)
  local bucket, parked, to, thread, user, agent, owner = fields_of(P, key, '.bucket', '.parked', '.to', '.thread', '.user',
    '.agent', '.owner')
  local id, gen = unpack(call('HMGET', P .. ':outcome:' .. key, '.claim', '.gen'))
  if bucket then
    if not matches(filter, { thread, user, agent }) then return nil end
    make_due(P, cfg, key, bucket, parked, owner, now)
    return { key, gen or '', to }
  end
  if not id then return nil end
  to, thread, user, agent = unpack(call('HMGET', P .. ':claim:' .. id, '.to', '.thread', '.user', '.agent'))
  return to and gen and matches(filter, { thread, user, agent }) and { key, gen, to } or nil
end

-- One page of a source -> next cursor, and its keys (of `claimed`: its claims)
local function flush_page(P, source, cursor, argv)
  if source == 'keys' then return '0', { unpack(argv, 4) } end
  if source == 'user' then return unpack(call('SSCAN', P .. ':user:' .. argv[4], cursor, 'COUNT', 1000)) end
  local page, members = call('ZSCAN', P .. ':' .. source, cursor, 'COUNT', 1000), {}
  for i = 1, #page[2], 2 do members[#members + 1] = page[2][i] end
  return page[1], members
end

-- memd_flush_1: KEYS P; ARGV source (keys, user, due, rationed, batched, claimed), cursor, filter [thread, user,
-- agent] with null for any; for keys: key hashes; for user: the hash of the user -> { cursor, { key, gen, seq }... },
-- some 1,000 keys
local function memd_flush(keys, argv)
  local P, source, now = keys[1], argv[1], clock()
  local filter, cfg = cjson.decode(argv[3]), config(P)
  local cursor, members = flush_page(P, source, argv[2], argv)
  local answer, seen = { cursor }, {}
  local function flush(key) answer[#answer + 1] = flush_key(P, cfg, key, filter, now) end
  each_counted(P, members, function(member)
    local key, place = member, P .. ':ctx:' .. member
    if source == 'claimed' then
      place = P .. ':claim:' .. member
      key = call('HGET', place, '.key')
    end
    if key then flush(key) end
    local bucket = source ~= 'keys' and call('HGET', place, '.bucket')
    if bucket and not seen[bucket] then
      seen[bucket] = true
      -- The others of the bucket: those parked are in no other row, and those before this one in line must not be due
      -- a page later, when a worker has taken it.
      for _, other in ipairs(call('ZRANGE', line_of(P, bucket), 0, 999)) do
        if other ~= key then flush(other) end
      end
    end
  end)
  return answer
end

-- memd_receipt_1: KEYS P; ARGV key... -> for each { gen, pending from, to, due, claimed from, to, ranges }; "" for none;
-- behind gen come the earlier generations, each with its last number
local function memd_receipt(keys, argv)
  local P, answers = keys[1], {}
  for i, key in ipairs(argv) do
    local gen, claim, ranges, gens = unpack(call('HMGET', P .. ':outcome:' .. key, '.gen', '.claim', '.ranges', '.gens'))
    local from, to = peek(P .. ':ctx:' .. key, '.from', '.to')
    local due = from and (call('ZSCORE', P .. ':due', key) or call('ZSCORE', P .. ':rationed', key))
    local claimed = claim and call('HMGET', P .. ':claim:' .. claim, '.from', '.to') or {}
    if gens then gen = gen .. ' ' .. gens end
    answers[i] = { gen or '', from or '', to or '', due or '', claimed[1] or '', claimed[2] or '', ranges or '' }
  end
  return answers
end

register('memd_flush', memd_flush)
register('memd_receipt', memd_receipt, { 'no-writes' })
end
