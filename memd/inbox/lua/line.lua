-- The line of a bucket: which of its due keys is claimed first.
--
-- The one whose newest message is the oldest, so that two conversations of a user are applied in the order in which they
-- were last pushed. A key that is not due is passed over, one in its backoff too: what fails must not keep its bucket
-- waiting. One that came back GIVES_WAY times in a row at no attempt lets the others go first even when it is due: the
-- endpoint may fail on its content only, and it would be the probe of an open breaker again and again.

local GIVES_WAY = 8 -- releases: some four to nine minutes with the default backoff
local LINE_PAGE = 100

local function gives_way(delays)
  return (tonumber(delays) or 0) >= GIVES_WAY
end

-- A key in line -> its row, when it may be claimed, and whether it gives way; nothing when it was of a wrong type
local function standing(P, bucket, key)
  local size, parked, delays = fields_of(P, key, '.size', '.parked', '.delays')
  local row = row_of(bucket, parked)
  return row, size and tonumber(call('ZSCORE', P .. ':' .. row, key)), gives_way(delays)
end

-- Of the due keys of a free bucket, `key` among them, the first in line, and its row
local function first_in_line(P, bucket, key, delays, now)
  local line, start, wanted, last, last_row = line_of(P, bucket), 0, 1, key, 'due'
  local found = false -- whether `last` is the first of those that give way
  while true do
    local page = call('ZRANGE', line, start, start + wanted - 1)
    for _, other in ipairs(page) do
      local row, due, back = 'due', now, gives_way(delays)
      if other ~= key then
        row, due, back = standing(P, bucket, other)
      end
      start = start + 1
      if not due then
        start = start - call('ZREM', line, other)
      elseif due <= now and not back then
        return other, row
      elseif due <= now and not found then
        last, last_row, found = other, row, true
      end
    end
    if #page < wanted then return last, last_row end
    wanted = LINE_PAGE
  end
end

-- memd_line_up_1: KEYS P; ARGV row (due, rationed, batched, or busy: the parked keys of busy buckets), cursor -> next
-- cursor. Builds before 16 had no lines: one page of what they left is lined up.
local function memd_line_up(keys, argv)
  local P, row = keys[1], argv[1]
  local place = P .. ':' .. row
  local page = row == 'busy' and call('HSCAN', place, argv[2], 'COUNT', 200) or call('ZSCAN', place, argv[2], 'COUNT', 200)
  local function enter(key, bucket) line_up(P, bucket, key, last_order(P .. ':ctx:' .. key)) end
  local names = {}
  for i = 1, #page[2], 2 do names[#names + 1] = page[2][i] end
  each_counted(P, names, function(name)
    local bucket = row == 'busy' and name or fields_of(P, name, '.bucket')
    if bucket and row ~= 'busy' then enter(name, bucket) end
    for _, key in ipairs(bucket and call('ZRANGE', P .. ':parked:' .. bucket, 0, -1) or {}) do enter(key, bucket) end
  end)
  return page[1]
end

register('memd_line_up', memd_line_up)
