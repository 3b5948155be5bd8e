-- How long keys waited until a worker claimed them, as a histogram among the counters: "took:wait:<bound>" for the first
-- bound (ms) that the wait is not above, "more" for longer ones, and "took:wait:ms" for the sum. memd/inbox/histograms.py
-- has the same bounds and counts the other histograms so.

local count_wait
do -- only this name is for other files: a library may have 200 local names

local BOUNDS = { 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 45000, 60000, 120000, 300000, 900000, 3600000 }

local function bound_of(ms)
  for _, bound in ipairs(BOUNDS) do
    if ms <= bound then return bound end
  end
  return 'more'
end

-- Counts the wait of a claim, from the first push in it. One that comes back was counted before: what it waits for then
-- is a backoff, an endpoint or a batch.
count_wait = function(P, claim, now)
  local first, attempts, delays, suspect, sent = unpack(call('HMGET', claim, '.first', '.attempts', '.delays', '.suspect',
    '.sent'))
  if not first or suspect or sent or (tonumber(attempts) or 0) + (tonumber(delays) or 0) > 0 then return end
  local ms = math.max(0, now - tonumber(first)) -- the clock may have been set back
  count(P, { 'took:wait:' .. bound_of(ms), 1, 'took:wait:ms', ms })
end
end
