-- Where a pending key waits: in due for its time, in parked:<bucket> for its bucket, in rationed for a budget, in
-- batched for the answer of a batch. It is in one of these rows only. Besides, it stands in the line of its bucket,
-- unless it is the only key of its user: nothing waits with it, and a line would take 7 % of its memory.

local function line_of(P, bucket)
  return P .. ':parked:line:' .. bucket
end

-- Gives a key its place in line, by the order of its newest message. A message that came back moves no key forward.
local function line_up(P, bucket, key, order)
  call('ZADD', line_of(P, bucket), 'GT', order, key)
end

-- Notes a key as one of its user's -> whether it is the only one. The second one brings the first one into line.
local function add_to_user(P, owner, key)
  local added = call('SADD', P .. ':user:' .. owner, key) == 1
  local cursor, members = '0', {}
  repeat -- apps have no right to SCARD; Redis 7.0 gives a small set in several pages
    local page = call('SSCAN', P .. ':user:' .. owner, cursor, 'COUNT', 2)
    cursor = page[1]
    for _, member in ipairs(page[2]) do members[#members + 1] = member end
  until cursor == '0' or #members > 2
  if #members > 2 then return false end
  for _, other in ipairs(added and members or {}) do
    local bucket = other ~= key and fields_of(P, other, '.bucket')
    if bucket then line_up(P, bucket, other, last_order(P .. ':ctx:' .. other)) end
  end
  return #members == 1
end

-- The row of a key with this field .parked
local function row_of(bucket, parked)
  return parked == '1' and 'parked:' .. bucket or parked or 'due'
end

-- Puts a key where it waits. While its bucket is busy a parked key stays parked, and only its place in the row changes.
-- A push does not bring back a key that waits for a budget or a batch: these are no debounce.
local function set_due(P, key, bucket, parked, due, now, tick)
  if parked == 'rationed' or parked == 'batched' then return end
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

-- Notes that a key waits in due again; false: it is of a wrong type, and set aside.
local function unmark(P, key)
  local reply = redis.pcall('HDEL', P .. ':ctx:' .. key, '.parked')
  if type(reply) ~= 'table' then return true end
  set_wrong_aside(P, key)
  return false
end

-- Moves the earliest parked key of a free bucket to due. One key is enough if it can be claimed at once; if even the
-- earliest is not due yet, none of them needs to be parked.
local function unpark(P, bucket, now)
  local row = P .. ':parked:' .. bucket
  local moved = call('ZPOPMIN', row)
  while #moved == 2 do
    local key, due = moved[1], moved[2]
    if unmark(P, key) then
      call('ZADD', P .. ':due', due, key)
      if tonumber(due) <= now then
        wake(P)
        return
      end
    end
    moved = call('ZPOPMIN', row)
  end
end

-- A bucket is freed only by the claim that it is busy with.
local function free_bucket(P, bucket, id, now)
  if call('HGET', P .. ':busy', bucket) ~= id then return end
  call('HDEL', P .. ':busy', bucket)
  unpark(P, bucket, now)
end

local function park(P, key, bucket)
  local due = call('ZSCORE', P .. ':due', key)
  call('ZREM', P .. ':due', key)
  call('ZADD', P .. ':parked:' .. bucket, due, key)
  call('HSET', P .. ':ctx:' .. key, '.parked', 1)
end

-- Moves a key from due to the row `rationed` or `batched`, until a moment. No key of its bucket may stay parked behind
-- a key that is not going to be claimed.
local function set_aside(P, row, key, bucket, moment, now)
  call('ZREM', P .. ':due', key)
  call('ZADD', P .. ':' .. row, moment, key)
  call('HSET', P .. ':ctx:' .. key, '.parked', row)
  if call('HEXISTS', P .. ':busy', bucket) == 0 then unpark(P, bucket, now) end
end

-- Moves a key from the row `rationed`, `batched` or `parked:<bucket>` to due.
local function bring_back(P, row, key, due)
  call('ZREM', P .. ':' .. row, key)
  if unmark(P, key) then call('ZADD', P .. ':due', due, key) end
end
