-- Events for apps: how pushes ended, in a stream that apps read in their own time (memd/inbox/app_events.py,
-- docs/events.md). The move that ends a push writes its event, so there is one for each end, whatever dies. While no
-- events are kept, which is the default, nothing is written.

local add_event, add_end
do -- only these names are for other files: a library may have 200 local names

local STREAM = 'memd:events' -- an app has rights on it alone; like the raw lists, which are for apps, it lacks the prefix
local PAGE = 1000 -- events that one call looks at

-- fields: name, value, name, value... A stream that cannot be written stops no move: it is counted, for the doctor.
local function add(P, cfg, fields)
  local most = cfg.events or 0
  if most == 0 then return end
  local added = redis.pcall('XADD', STREAM, 'MAXLEN', '~', most, '*', unpack(fields))
  if type(added) == 'table' and added.err then count(P, { 'events_lost', 1 }) end
end

-- The end of the pushes from c.from to c.to of c.key, with the receipt of the last one. more: further fields
local function add_end_of(P, cfg, event, c, more)
  if (cfg.events or 0) == 0 then return end
  local gen = call('HGET', P .. ':outcome:' .. c.key, '.gen') or ''
  local fields = {
    'event', event, 'receipt', c.key .. '.' .. gen .. '.' .. c.to, 'pushes', c.to - c.from + 1,
    'user', c.owner, 'bucket', c.bucket,
  }
  for _, value in ipairs(more) do fields[#fields + 1] = value end
  add(P, cfg, fields)
end

-- Whether an event tells of this user, and of this bucket if one is named. That a user was forgotten may be told.
local function is_about(entry, owner, bucket)
  local fields = {}
  for i = 1, #entry[2], 2 do fields[entry[2][i]] = entry[2][i + 1] end
  return fields.user == owner and (bucket == '' or fields.bucket == bucket) and fields.event ~= 'forgotten'
end

-- memd_forget_events_1: KEYS P; ARGV owner, bucket or "" for all, ms of the cut, the id to begin at -> the id to go on
-- at, or "" when done: removes what was told of a user up to the cut, and at the end tells that the user is forgotten
local function memd_forget_events(keys, argv)
  local owner, bucket, cut = argv[1], argv[2], tonumber(argv[3])
  local page, gone = redis.pcall('XRANGE', STREAM, argv[4], '+', 'COUNT', PAGE), {}
  if page.err then page = {} end -- something else than a stream, which the doctor names
  for _, entry in ipairs(page) do
    local at = tonumber(string.match(entry[1], '^%d+'))
    if at <= cut and is_about(entry, owner, bucket) then gone[#gone + 1] = entry[1] end
  end
  if #gone > 0 then call('XDEL', STREAM, unpack(gone)) end
  if #page == PAGE then return '(' .. page[PAGE][1] end
  local fields = { 'event', 'forgotten', 'user', owner }
  if bucket ~= '' then put(fields, 'bucket', bucket) end
  add(keys[1], config(keys[1]), fields)
  return ''
end

register('memd_forget_events', memd_forget_events)
add_event, add_end = add, add_end_of
end
