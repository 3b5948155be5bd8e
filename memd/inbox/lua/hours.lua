-- Counters by the hour: a ring of the last hours, which memd_sweep keeps once a second; no move of a context writes it.
-- An entry has the counters as they were when its hour was last looked at. What an hour counted is the difference to the
-- entry before it, so a restart or a failover loses nothing, and what no scheduler saw is found in the next hour that
-- one sees.

local note_hour
do -- of all names below only this one is for other files: a library may have 200 local names, and is near it

local HOUR = 3600000 -- ms
local ENTRIES = 49 -- the oldest has no row of its own: the 48 others are counted from it

local COUNTERS = {
  'pushes', 'stored', 'skipped', 'facts_added', 'model_calls', 'dead', 'revived', 'input_tokens', 'output_tokens',
  'cache_read_tokens', 'cache_write_tokens',
}

local function all_pending(P)
  local keys = 0
  for _, row in ipairs({ 'due', 'rationed', 'batched' }) do keys = keys + call('ZCARD', P .. ':' .. row) end
  for _, bucket in ipairs(call('HKEYS', P .. ':busy')) do keys = keys + call('ZCARD', P .. ':parked:' .. bucket) end
  return keys
end

-- The counters as they are written: six as they are, then those that are sums
local function totals(P)
  local n = call('HMGET', P .. ':stats', unpack(COUNTERS))
  for i in ipairs(COUNTERS) do n[i] = tonumber(n[i] or 0) end
  local died, tokens = n[6] + n[7], n[8] + n[9] + n[10] + n[11]
  return string.format('%.0f %.0f %.0f %.0f %.0f %.0f %.0f', n[1], n[2], n[3], n[4], n[5], died, tokens)
end

local function entry(hour, pending, most, counted)
  return string.format('%.0f %.0f %.0f %s', hour, pending, most, counted)
end

-- The newest entry, without those of a time to come: the clock was set back, and what they counted is this hour's.
local function newest_hour(P, hour)
  local head = call('LINDEX', P .. ':hours', 0)
  while head do
    local at, most = string.match(head, '^(%d+) %d+ (%d+) ')
    if tonumber(at) <= hour then return head, tonumber(at), tonumber(most) end
    call('LPOP', P .. ':hours')
    head = call('LINDEX', P .. ':hours', 0)
  end
end

-- Brings the entry of this hour up to date. Nothing is written while nothing changes.
local function note(P, now)
  local hour, pending, counted = math.floor(now / HOUR), all_pending(P), totals(P)
  local head, at, most = newest_hour(P, hour)
  if at == hour then
    local newer = entry(hour, pending, math.max(most, pending), counted)
    if newer == head then return end
    call('LPOP', P .. ':hours')
    call('LPUSH', P .. ':hours', newer)
    return
  end
  if not head then call('LPUSH', P .. ':hours', entry(0, 0, 0, counted)) end -- what the first hour counts from
  call('LPUSH', P .. ':hours', entry(hour, pending, pending, counted))
  call('LTRIM', P .. ':hours', 0, ENTRIES - 1)
end

note_hour = note
end
