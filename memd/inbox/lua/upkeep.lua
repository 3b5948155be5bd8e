-- What the scheduler does in every round: look for work and lost claims, remove old outcomes, mend times, guard the
-- memory.

local rebase
do -- only this name is for other files: a library may have 200 local names

-- memd_tick_1: KEYS P; ARGV grace in ms, limit, endpoint -> { now, keys due and batches to poll for longer than grace,
-- ms of the next one or -1, ms at which the next lease ends or -1, claims whose lease ran out... }
local function memd_tick(keys, argv)
  local P, now = keys[1], clock()
  local edge = now - tonumber(argv[1])
  local waiting, ahead = 0, nil
  for _, row in ipairs({ 'due', 'rationed', 'batched', 'batches' }) do
    waiting = waiting + call('ZCOUNT', P .. ':' .. row, '-inf', edge)
    local later = call('ZRANGEBYSCORE', P .. ':' .. row, '(' .. edge, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    local moment = tonumber(later[2])
    if moment then ahead = math.min(ahead or moment, moment) end
  end
  local expired = call('ZRANGEBYSCORE', P .. ':claimed', '-inf', now, 'LIMIT', 0, argv[2])
  if #expired > 0 and is_another(P, config(P)) then expired = {} end -- its clock is not the one that gave the leases
  local lease = tonumber(call('ZRANGE', P .. ':claimed', 0, 0, 'WITHSCORES')[2]) or -1
  local state, moment = breaker_state(P, argv[3], now)
  if state == 'open' or state == 'probing' then return { now, 0, moment, lease, unpack(expired) } end
  if state == 'half-open' then waiting = math.min(waiting, 1) end
  return { now, waiting, ahead and ahead - edge + now or -1, lease, unpack(expired) }
end

-- Keys of a wrong type that somebody has removed since are named no longer.
local function sweep_wrong(P, limit)
  for _, key in ipairs(call('SSCAN', P .. ':wrong', 0, 'COUNT', limit)[2]) do
    if call('EXISTS', P .. ':wrong:' .. key) == 0 then call('SREM', P .. ':wrong', key) end
  end
end

-- memd_sweep_1: KEYS P; ARGV limit -> how many outcomes were removed because their time is over. Raw letters go, too,
-- and the counters of this hour are noted.
local function memd_sweep(keys, argv)
  local P, now, swept = keys[1], clock(), 0
  sweep_raw_letters(P, now, tonumber(argv[1]))
  sweep_wrong(P, argv[1])
  for _, key in ipairs(call('ZRANGEBYSCORE', P .. ':ended', '-inf', now, 'LIMIT', 0, argv[1])) do
    local claim, letters, owner = unpack(call('HMGET', P .. ':outcome:' .. key, '.claim', '.letters', '.owner'))
    local in_use = call('EXISTS', P .. ':ctx:' .. key) > 0 or claim or (tonumber(letters) or 0) > 0
    if not in_use then
      if owner then call('SREM', P .. ':user:' .. owner, key) end
      call('DEL', P .. ':outcome:' .. key)
      swept = swept + 1
    end
    call('ZREM', P .. ':ended', key)
  end
  each({ now }, function() note_hour(P, now) end) -- a ring of a wrong type stops nothing; the doctor names it
  return swept
end

-- Moves members that lie beyond `limit` to `to`.
local function clamp(set, limit, to)
  local late = call('ZRANGEBYSCORE', set, '(' .. limit, '+inf', 'LIMIT', 0, CHUNK)
  for _, member in ipairs(late) do call('ZADD', set, to, member) end
  return #late
end

local function clamp_breakers(P, cfg, now)
  local mended = 0
  for _, endpoint in ipairs(call('SMEMBERS', P .. ':breakers')) do
    local b = P .. ':breaker:' .. endpoint
    if call('EXISTS', b) == 0 then call('SREM', P .. ':breakers', endpoint) end
    local open_until, wait, probe_until = unpack(call('HMGET', b, 'until', 'wait', 'probe_until'))
    if open_until and wait and tonumber(open_until) > now + wait then
      call('HSET', b, 'until', now + wait)
      mended = mended + 1
    end
    if probe_until and tonumber(probe_until) > now + cfg.lease_ms then
      call('HSET', b, 'probe_until', now + cfg.lease_ms)
    end
  end
  return mended
end

-- memd_rebase_1: KEYS P -> how many times were mended. A clock that was set back leaves times far in the future. No
-- key may be due later than the longest pause from now, and no lease may end later than one lease from now.
local function memd_rebase(keys)
  local P, now = keys[1], clock()
  local cfg = config(P)
  local poll = cfg.batch_poll_ms or POLL_MS
  local mended = clamp(P .. ':due', now + math.max(cfg.max_wait_ms, cfg.backoff_max_ms), now + cfg.quiet_ms)
    + clamp(P .. ':rationed', last_wait(cfg, now), day_end(now))
    + clamp(P .. ':batched', now + BATCH_MS, now + BATCH_MS)
    + clamp(P .. ':batches', now + 10 * poll, now + poll)
    + clamp(P .. ':claimed', now + cfg.lease_ms, now + cfg.lease_ms)
    + clamp(P .. ':ended', now + cfg.receipt_ttl_ms, now + cfg.receipt_ttl_ms)
    + clamp_breakers(P, cfg, now)
  if mended > 0 then wake(P) end
  return mended
end

-- memd_full_1: KEYS P; ARGV 1 or 0: closes the trusted door near the memory limit, or opens it
local function memd_full(keys, argv)
  call('HSET', keys[1] .. ':config', 'full', argv[1])
  return 1
end

-- memd_beat_1: KEYS P; ARGV a random number: a scheduler is alive, also on a server at its memory limit
local function memd_beat(keys, argv)
  call('HSET', keys[1] .. ':config', 'beat', argv[1])
  return 1
end

register('memd_tick', memd_tick, { 'no-writes' })
register('memd_sweep', memd_sweep)
register('memd_rebase', memd_rebase)
register('memd_full', memd_full)
register('memd_beat', memd_beat)
rebase = memd_rebase
end
