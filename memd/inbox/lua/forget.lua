-- Forgetting: what the inbox holds of a user is read or removed, page by page; a tombstone keeps it from coming back.

local FORGET_PAGE = 100

-- What the inbox holds of one key -> bucket, pushes under way, identities
local function read_traces(P, cfg, key, now)
  local bucket, claim = unpack(call('HMGET', P .. ':outcome:' .. key, '.bucket', '.claim'))
  local ids, pushes = {}, 0
  local hashes = { P .. ':ctx:' .. key }
  if claim then hashes[2] = P .. ':claim:' .. claim end
  for _, hash in ipairs(hashes) do
    local from, to, its_bucket = peek(hash, '.from', '.to', '.bucket')
    if from then
      pushes, bucket = pushes + to - from + 1, its_bucket
      for _, identity in ipairs(identities(hash)) do ids[#ids + 1] = identity end
    end
  end
  local newer, older = known_sets(P, cfg, key, now)
  for _, set in ipairs({ newer, older, P .. ':died:' .. key }) do
    for _, identity in ipairs(call('SMEMBERS', set)) do ids[#ids + 1] = identity end
  end
  return bucket, pushes, ids
end

local function forget_key(P, cfg, owner, key, bucket, now)
  local id = call('HGET', P .. ':outcome:' .. key, '.claim')
  local c = id and read_claim(P, id)
  for _, row in ipairs({ 'due', 'rationed', 'batched', 'ended' }) do call('ZREM', P .. ':' .. row, key) end
  if bucket then call('ZREM', P .. ':parked:' .. bucket, key) end
  local newer, older = known_sets(P, cfg, key, now)
  local oldest = P .. ':known:' .. key -- the one set that builds before 6 had
  call('DEL', P .. ':ctx:' .. key, newer, older, oldest, P .. ':died:' .. key, P .. ':outcome:' .. key)
  call('SREM', P .. ':user:' .. owner, key)
  if c then -- last, because freeing the bucket moves the next key up
    call('DEL', P .. ':claim:' .. id)
    close(P, id, c, now)
  end
end

-- How much a user talked on these days is a trace, too.
local function forget_days(P, owner, now)
  local today = math.floor(now / DAY)
  for day = today - 1, today do call('HDEL', P .. ':spent:' .. day, owner) end
end

-- One page of a user's keys. remove: a function that removes a key, or nil to read only
local function traces(P, argv, remove)
  local owner, bucket, now, cfg = argv[1], argv[2], clock(), config(P)
  local page = call('SSCAN', P .. ':user:' .. owner, argv[3], 'COUNT', FORGET_PAGE)
  local answer, under_way = { page[1], 0 }, 0
  local wrong = each(page[2], function(key)
    local its_bucket, pushes, ids = read_traces(P, cfg, key, now)
    if bucket == '' or bucket == its_bucket then
      under_way = under_way + pushes
      for _, identity in ipairs(ids) do answer[#answer + 1] = identity end
      if remove then remove(P, cfg, owner, key, its_bucket, now) end
    end
  end)
  if remove and wrong > 0 then count(P, { 'wrong_type', wrong }) end
  answer[2] = under_way
  if remove and bucket == '' then forget_days(P, owner, now) end
  if remove and under_way > 0 then count(P, { 'forgotten', under_way }) end
  return answer
end

-- memd_traces_1: KEYS P; ARGV owner, bucket or "" for all, cursor -> { cursor, pushes under way, identity... }: one
-- page
local function memd_traces(keys, argv) return traces(keys[1], argv, nil) end

-- memd_forget_1: the same, and removes what it returns. The dead are dropped by their letters.
local function memd_forget(keys, argv) return traces(keys[1], argv, forget_key) end

-- memd_tombstone_1: KEYS P; ARGV owner, salt, hash... -> 1: messages with these salted hashes are skipped as forgotten
local function memd_tombstone(keys, argv)
  local tomb, fields = keys[1] .. ':forgotten:' .. argv[1], { '.salt', argv[2] }
  for i = 3, #argv do put(fields, argv[i], 1) end
  hset(tomb, fields)
  return 1
end

register('memd_traces', memd_traces, { 'no-writes' })
register('memd_forget', memd_forget)
register('memd_tombstone', memd_tombstone)
