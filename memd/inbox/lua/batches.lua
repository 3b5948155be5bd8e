-- Requests in a batch of the model's endpoint: a claim is given back until its request is answered.

local POLL_MS = 60000 -- where the settings do not say how often a batch is polled
local BATCH_MS = 26 * 3600000 -- a batch ends within 24 hours; its open requests are then made again

-- memd_keep_1: KEYS P; ARGV claim, what was asked, answer -> 1, or 0 when the claim does not exist any more. The claim
-- keeps the answer to its messages as if a batch had brought it: it goes back with them, and nobody asks again.
local function memd_keep(keys, argv)
  local claim = keys[1] .. ':claim:' .. argv[1]
  if call('EXISTS', claim) == 0 then return 0 end
  call('HSET', claim, '.batch', argv[1], '.sent', last_order(claim), '.print', argv[2], '.answer', argv[3])
  return 1
end

-- memd_defer_1: KEYS P; ARGV claim, batch, endpoint, what was asked -> 1, or 0 when the claim does not exist any more.
-- The claim's request is in a batch: its messages are pending again, its bucket is free, and the key waits for the
-- answer, except if it was flushed in the meantime.
local function memd_defer(keys, argv)
  local P, id, now = keys[1], argv[1], clock()
  local c = read_claim(P, id)
  if not c then return 0 end
  local cfg, batch, sent = config(P), P .. ':batch:' .. argv[2], last_order(P .. ':claim:' .. id)
  call('HSET', batch, id, c.key .. ' ' .. c.owner .. ' ' .. c.held, '.at', argv[3])
  call('HSETNX', batch, '.made', now)
  call('ZADD', P .. ':batches', 'NX', now + (cfg.batch_poll_ms or POLL_MS), argv[2])
  c.held = 0 -- what is held back for the request stays held back until it is answered
  local request = { '.batch', id, '.sent', sent, '.print', argv[4], '.attempts', c.attempts, '.delays', c.delays }
  give_back(P, id, c, request, now)
  call('HDEL', P .. ':ctx:' .. c.key, '.answer')
  if call('HEXISTS', P .. ':ctx:' .. c.key, '.urgent') == 1 then
    set_due(P, c.key, c.bucket, nil, now, now, cfg.tick_ms)
  else
    set_aside(P, 'batched', c.key, c.bucket, now + BATCH_MS, now)
  end
  count(P, { 'deferred', 1 })
  return 1
end

-- A request that was not answered, through no fault of its content, is made again after a backoff, at no attempt.
-- urgent: not in a batch again, after a day's waiting.
local function ask_again(P, cfg, key, jitter, urgent, now)
  local ctx = P .. ':ctx:' .. key
  local delays, parked = unpack(call('HMGET', ctx, '.delays', '.parked'))
  delays = tonumber(delays) or 0
  local backoff = math.min(cfg.backoff_max_ms, cfg.backoff_ms * 2 ^ math.min(delays, 30))
  local due = now + math.floor(backoff * (0.5 + jitter / 2))
  call('HDEL', ctx, unpack(BATCH_FIELDS))
  call('HSET', ctx, '.delays', delays + 1)
  if urgent then call('HSET', ctx, '.urgent', 1) end
  if parked == 'batched' then
    call('HSET', ctx, '.after', due)
    bring_back(P, 'batched', key, due)
  end
  count(P, { 'released:batch', 1 })
end

-- Hands an answer to its key, which is due now: the answer is paid for, so no budget keeps it.
local function hand_over(P, key, answer, now)
  local ctx = P .. ':ctx:' .. key
  call('HSET', ctx, '.answer', answer)
  local parked = call('HGET', ctx, '.parked')
  if parked == 'batched' or parked == 'rationed' then
    bring_back(P, parked, key, now)
    wake(P)
  end
end

-- Settles one request of a batch -> taken, unused (no key waits for it any more), or unknown
local function settle(P, cfg, batch, id, argv, now)
  local row = call('HGET', batch, id)
  if not row then return 'unknown' end
  local verb, key, owner, held = argv[3], string.match(row, '^(%S+) (%S+) (%d+)$')
  local how = fields_of(P, key, '.batch') == id and 'taken' or 'unused'
  if how == 'unused' then
    count(P, { 'unused_answers', 1 })
    local user = call('EXISTS', P .. ':user:' .. owner) == 1 and owner
    count_and_spend(P, cfg, user, { unpack(argv, verb == 'take' and 5 or 6) }, now)
  elseif verb == 'take' then
    hand_over(P, key, argv[4], now)
  else
    ask_again(P, cfg, key, tonumber(argv[4]), argv[5] == '1', now)
  end
  call('HDEL', batch, id)
  if tonumber(held) > 0 then hold(P, owner, -held) end
  return how
end

local function close_batch(P, id)
  if call('HLEN', P .. ':batch:' .. id) > 2 then return end -- more than .made and .at
  call('DEL', P .. ':batch:' .. id)
  call('ZREM', P .. ':batches', id)
end

local function requests(batch)
  local ids = {}
  for _, field in ipairs(call('HKEYS', batch)) do
    if string.sub(field, 1, 1) ~= '.' then ids[#ids + 1] = field end
  end
  return ids
end

-- memd_answer_1: KEYS P; ARGV batch, request or "" for all that are left, then one of
--   take, answer, stat, n... (counted only if no key waits for the answer any more)  |  again, jitter 0-1, 1 if urgent
-- -> taken, unused, or unknown (of all: how many)
local function memd_answer(keys, argv)
  local P, batch, now = keys[1], keys[1] .. ':batch:' .. argv[1], clock()
  local cfg, result = config(P), 0
  if argv[2] ~= '' then
    result = settle(P, cfg, batch, argv[2], argv, now)
  else
    for _, id in ipairs(requests(batch)) do
      settle(P, cfg, batch, id, argv, now)
      result = result + 1
    end
  end
  close_batch(P, argv[1])
  return result
end

-- How many requests of a batch keys still wait for
local function awaited(P, batch)
  local n = 0
  for _, request in ipairs(requests(batch)) do
    local key = string.match(call('HGET', batch, request), '^%S+')
    if fields_of(P, key, '.batch') == request then n = n + 1 end
  end
  return n
end

-- memd_poll_1: KEYS P; ARGV endpoint, limit, jitter 0-1 -> { batch, ms since it was made, requests that keys wait for
-- }... The batches of this endpoint to be polled now. Others leave them alone for a while: the older a batch is, the
-- longer. A batch that is too old is given up.
local function memd_poll(keys, argv)
  local P, now, rows = keys[1], clock(), {}
  local cfg = config(P)
  for _, id in ipairs(call('ZRANGEBYSCORE', P .. ':batches', '-inf', now, 'LIMIT', 0, argv[2])) do
    local batch = P .. ':batch:' .. id
    local made, endpoint = unpack(call('HMGET', batch, '.made', '.at'))
    local age = now - (tonumber(made) or 0)
    if age > BATCH_MS then
      for _, request in ipairs(requests(batch)) do
        settle(P, cfg, batch, request, { '', '', 'again', argv[3], '1' }, now)
      end
      close_batch(P, id)
    else
      local least = cfg.batch_poll_ms or POLL_MS
      local pause = math.min(math.max(least, age / 10), 10 * least)
      call('ZADD', P .. ':batches', math.floor(now + pause), id)
      if endpoint == argv[1] then rows[#rows + 1] = { id, age, awaited(P, batch) } end
    end
  end
  return rows
end

register('memd_keep', memd_keep, {}) -- without room for it the claim goes back without its answer
register('memd_defer', memd_defer)
register('memd_answer', memd_answer)
register('memd_poll', memd_poll)
