-- The circuit breaker of a model endpoint. closed: calls are made. open: no key is claimed until a moment. half-open:
-- one claim may be taken as a probe; while it is out, the state is probing. The probe's success closes the breaker.

local FAILURES = 3 -- in a row, of a kind that one request may be to blame for, until they count as an outage

-- -> state, and the moment it lasts until
local function breaker_state(P, endpoint, now)
  local open_until, probe_until = unpack(call('HMGET', P .. ':breaker:' .. endpoint, 'until', 'probe_until'))
  if not open_until then return 'closed', now end
  if now < tonumber(open_until) then return 'open', tonumber(open_until) end
  if probe_until and now < tonumber(probe_until) then return 'probing', tonumber(probe_until) end
  return 'half-open', now
end

-- A call failed. argv: endpoint, trip, code, outage or maybe, Retry-After in ms, least pause in ms, jitter 0-1
local function trip(P, b, argv, now)
  local cfg, code, kind = config(P), argv[3], argv[4]
  local retry_after, least, jitter = tonumber(argv[5]), tonumber(argv[6]), tonumber(argv[7])
  local open_until, last_delay = unpack(call('HMGET', b, 'until', 'delay'))
  local failed = call('HINCRBY', b, 'failed', 1)
  -- Only the breaker can keep a pause longer than backoff_max: no key may be due later than that.
  local may_be_content = kind == 'maybe' and failed < FAILURES and retry_after <= cfg.backoff_max_ms
  if not open_until and may_be_content then return { 'counted', 0, '' } end
  if open_until and now < tonumber(open_until) then -- this call was in flight when the breaker opened
    if now + retry_after > tonumber(open_until) then
      call('HSET', b, 'until', now + retry_after, 'wait', retry_after)
    end
    return { 'open', math.max(tonumber(open_until), now + retry_after) - now, '' }
  end
  local delay = last_delay and math.min(last_delay * 2, cfg.backoff_max_ms) or cfg.backoff_ms
  delay = math.max(delay, least)
  local wait = math.max(math.floor(delay * (0.5 + jitter / 2)), least, retry_after)
  call('HSET', b, 'until', now + wait, 'wait', wait, 'delay', delay, 'code', code)
  call('HSETNX', b, 'opened', now)
  call('HDEL', b, 'probe', 'probe_until')
  call('SADD', P .. ':breakers', argv[1])
  if open_until then return { 'open', wait, '' } end
  count(P, { 'outages', 1 })
  return { 'opened', wait, '' }
end

-- memd_breaker_1: KEYS P; ARGV endpoint, verb, ...: trip: see above; close: the claim whose call succeeded; free: the
-- claim that ended without a call -> { opened, open, counted, closed or ok, pause in ms, code }
local function memd_breaker(keys, argv)
  local P, now, b = keys[1], clock(), keys[1] .. ':breaker:' .. argv[1]
  local verb, claim = argv[2], argv[3]
  if verb == 'trip' then return trip(P, b, argv, now) end
  local open_until, probe, code = unpack(call('HMGET', b, 'until', 'probe', 'code'))
  if verb == 'free' then
    if probe == claim then call('HDEL', b, 'probe', 'probe_until') end
  elseif not open_until then
    call('DEL', b)
  elseif probe == claim then -- only the probe closes it: a call from before the outage proves nothing
    call('DEL', b)
    wake(P)
    return { 'closed', 0, code }
  end
  return { 'ok', 0, '' }
end

register('memd_breaker', memd_breaker)
