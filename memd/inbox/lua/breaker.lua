-- The circuit breakers of a model endpoint: one that all hosts share, and one for each host, <endpoint>@<host>, which
-- opens when this host gets no HTTP status. The shared one opens with a status, or when no host gets one. closed: calls are made. open: no key is claimed until a moment. half-open:
-- one claim may be taken as a probe; while it is out, the state is probing. The probe's success closes the breaker.
-- Replies that are no update open the shared one, too, when there were FORMLESS in a row and no other in between.

local MINUTE = 60000 -- ms
local FORMLESS = 10
local UNFIT = 'no_structured_output' -- the code of a breaker that replies without an update opened
local FAILURES = 3 -- in a row, of a kind that one request may be to blame for, until they count as an outage

-- -> state, and the moment it lasts until
local function breaker_state(P, endpoint, now)
  local open_until, probe_until = unpack(call('HMGET', P .. ':breaker:' .. endpoint, 'until', 'probe_until'))
  if not open_until then return 'closed', now end
  if now < tonumber(open_until) then return 'open', tonumber(open_until) end
  if probe_until and now < tonumber(probe_until) then return 'probing', tonumber(probe_until) end
  return 'half-open', now
end

local function own_breaker(endpoint, host) return endpoint .. '@' .. host end

-- Of the breakers that hold for a host: the state that allows least, the moment it lasts until, and the names of those
-- that are not closed
local function states(P, endpoint, host, now)
  local state, moment, names = 'closed', now, {}
  for _, name in ipairs({ endpoint, own_breaker(endpoint, host) }) do
    local s, m = breaker_state(P, name, now)
    if s ~= 'closed' then names[#names + 1] = name end
    if s == 'open' or s == 'probing' then return s, m, names end
    if s == 'half-open' then state = s end
  end
  return state, moment, names
end

-- P:breaker:<endpoint>:hosts says when a host last called; the sign says whether it got an HTTP status.
local function note_caller(P, endpoint, host, at)
  local b = P .. ':breaker:' .. endpoint .. ':hosts'
  call('HSET', b, host, at)
  call('PEXPIRE', b, 10 * MINUTE)
end

-- Whether no host that called in the last minute got a status
local function nobody_reaches(P, endpoint, now)
  local flat = call('HGETALL', P .. ':breaker:' .. endpoint .. ':hosts')
  for i = 1, #flat, 2 do
    if tonumber(flat[i + 1]) > now - MINUTE then return false end
  end
  return true
end

-- Opens a breaker after a failed call. f: code, route (no status came), retry_after, least, jitter
local function open_breaker(P, cfg, name, f, now)
  local b, code, retry_after, least = P .. ':breaker:' .. name, f.code, f.retry_after, f.least
  local open_until, last_delay = unpack(call('HMGET', b, 'until', 'delay'))
  if open_until and now < tonumber(open_until) then -- this call was in flight when the breaker opened
    if now + retry_after > tonumber(open_until) then
      call('HSET', b, 'until', now + retry_after, 'wait', retry_after)
    end
    return { 'open', math.max(tonumber(open_until), now + retry_after) - now, '' }
  end
  local delay = last_delay and math.min(last_delay * 2, cfg.backoff_max_ms) or cfg.backoff_ms
  delay = math.max(delay, least)
  local wait = math.max(math.floor(delay * (0.5 + f.jitter / 2)), least, retry_after)
  call('HSET', b, 'until', now + wait, 'wait', wait, 'delay', delay, 'code', code, 'route', f.route and 1 or 0)
  call('HSETNX', b, 'opened', now)
  call('HDEL', b, 'probe', 'probe_until')
  call('SADD', P .. ':breakers', name)
  return { open_until and 'open' or 'opened', wait, '' }
end

-- A call failed. argv: endpoint, trip, code, outage or maybe, Retry-After in ms, least pause in ms, jitter 0-1, host or
-- "", 1 if the endpoint gave a status
local function trip(P, argv, now)
  local cfg, endpoint, host, kind = config(P), argv[1], argv[8] or '', argv[4]
  local route = host ~= '' and argv[9] == '0'
  local f = { code = argv[3], route = route, retry_after = tonumber(argv[5]), least = tonumber(argv[6]) }
  f.jitter = tonumber(argv[7])
  if host ~= '' then note_caller(P, endpoint, host, route and -now or now) end
  local name = route and own_breaker(endpoint, host) or endpoint
  local b = P .. ':breaker:' .. name
  local failed = call('HINCRBY', b, 'failed', 1)
  if route then call('PEXPIRE', b, DAY) end -- of a host that never comes back
  -- Only the breaker can keep a pause longer than backoff_max: no key may be due later than that.
  local may_be_content = kind == 'maybe' and failed < FAILURES and f.retry_after <= cfg.backoff_max_ms
  if may_be_content and call('HEXISTS', b, 'until') == 0 then return { 'counted', 0, '' } end
  local result = open_breaker(P, cfg, name, f, now)
  if route and nobody_reaches(P, endpoint, now) then result = open_breaker(P, cfg, endpoint, f, now) end
  if result[1] == 'opened' then count(P, { 'outages', 1 }) end
  return result
end

-- A call of a claim succeeded. While a breaker is open because of statuses, only the probe closes it: a call from before
-- the outage proves nothing. That an endpoint is reached again, or can give an update, is proved by any call. -> the code
-- of the outage
local function succeed(P, name, claim)
  local b = P .. ':breaker:' .. name
  local open_until, probe, code, route = unpack(call('HMGET', b, 'until', 'probe', 'code', 'route'))
  if open_until and probe ~= claim and route ~= '1' and code ~= UNFIT then return nil end
  call('DEL', b)
  return open_until and code
end

-- What an endpoint's calls stored is an update, whoever reported its call, and when.
local function end_formless_row(P, endpoint) call('HDEL', P .. ':breaker:' .. endpoint, 'formless') end

-- The endpoint replied, so an outage is over, but the reply is no update. argv: endpoint, formless, claim, host or "",
-- jitter 0-1
local function formless(P, argv, now)
  local endpoint, claim, host = argv[1], argv[3], argv[4]
  local b, closed = P .. ':breaker:' .. endpoint, nil
  local row, code = unpack(call('HMGET', b, 'formless', 'code'))
  if host ~= '' then
    note_caller(P, endpoint, host, now)
    closed = succeed(P, own_breaker(endpoint, host), claim)
  end
  if code ~= UNFIT then closed = succeed(P, endpoint, claim) or closed end
  row = (tonumber(row) or 0) + 1
  call('HSET', b, 'formless', row)
  if row >= FORMLESS or code == UNFIT then
    local f = { code = UNFIT, route = false, retry_after = 0, least = 0, jitter = tonumber(argv[5]) }
    local result = open_breaker(P, config(P), endpoint, f, now)
    if result[1] == 'opened' then count(P, { 'outages', 1 }) end
    return result
  end
  if not closed then return { 'counted', 0, '' } end
  wake(P)
  return { 'closed', 0, closed }
end

-- memd_breaker_1: KEYS P; ARGV endpoint, verb, ...: trip, formless: see above; close: the claim whose call succeeded, and
-- the host or ""; free: the claim that ended without a call, and the host -> { opened, open, counted, closed or ok, pause
-- in ms, code }
local function memd_breaker(keys, argv)
  local P, now, endpoint, verb, claim = keys[1], clock(), argv[1], argv[2], argv[3]
  if verb == 'trip' then return trip(P, argv, now) end
  if verb == 'formless' then return formless(P, argv, now) end
  local host, closed = argv[4] or '', nil
  if verb == 'close' and host ~= '' then note_caller(P, endpoint, host, now) end
  for _, name in ipairs({ endpoint, own_breaker(endpoint, host) }) do
    if verb == 'close' then
      closed = succeed(P, name, claim) or closed
    elseif call('HGET', P .. ':breaker:' .. name, 'probe') == claim then
      call('HDEL', P .. ':breaker:' .. name, 'probe', 'probe_until')
    end
  end
  if not closed then return { 'ok', 0, '' } end
  wake(P)
  return { 'closed', 0, closed }
end

register('memd_breaker', memd_breaker)
