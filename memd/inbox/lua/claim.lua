-- Claiming: due keys whose bucket is free go to a worker, with a lease.

local BATCH_FIELDS = { '.batch', '.sent', '.print', '.answer' }

-- The fields of a context: its messages by order, and the meta fields that a claim keeps
local function read_context(ctx)
  local flat, messages, meta = call('HGETALL', ctx), {}, {}
  for i = 1, #flat, 2 do
    local field, value = flat[i], flat[i + 1]
    if is_message(field) then
      local order, seq, tokens = parts(value)
      messages[#messages + 1] = {
        field = field, value = value, order = tonumber(order), seq = tonumber(seq), tokens = tonumber(tokens),
      }
    elseif field ~= '.now' and field ~= '.parked' then
      put(meta, field, value)
    end
  end
  table.sort(messages, function(a, b) return a.order < b.order end)
  return messages, meta
end

local function role(m)
  local ok, body = pcall(cjson.decode, (select(5, parts(m.value))))
  return ok and type(body) == 'table' and body.role
end

-- Whether a message may be the user's answer to the assistant's question before it: without that it says nothing, so
-- the two are not split, though the claim gets up to answer_tokens larger.
local function may_answer(m, before, answer_tokens)
  return m.tokens <= answer_tokens and role(m) == 'user' and role(before) == 'assistant'
end

-- Part of a context goes into a claim: the oldest messages, up to `limit` tokens and up to the order `last`, and at
-- least one. The rest stays pending, and due.
local function split(cfg, ctx, claim, limit, last)
  local messages, fields = read_context(ctx)
  local size, n, taken = 0, 0, {}
  for i, m in ipairs(messages) do
    if i > 1 and m.order > last then break end
    if i > 1 and size + m.tokens > limit and not may_answer(m, messages[i - 1], cfg.answer_tokens) then break end
    size, n, taken[i] = size + m.tokens, i, m.field
    put(fields, m.field, m.value)
  end
  -- A push that only changed messages has a sequence number but no message of its own. It ends together with the pushes
  -- before the next number.
  local next_one = messages[n + 1]
  put(fields, '.to', next_one and math.max(messages[n].seq, next_one.seq - 1) or call('HGET', ctx, '.to'))
  put(fields, '.size', size)
  hset(claim, fields)
  if not next_one then
    call('DEL', ctx)
    return
  end
  hdel(ctx, taken)
  local rest, from = 0, next_one.seq
  for i = n + 1, #messages do
    rest, from = rest + messages[i].tokens, math.min(from, messages[i].seq)
  end
  call('HSET', ctx, '.from', from, '.size', rest, '.tokens', rest)
  call('HDEL', ctx, '.formless', unpack(BATCH_FIELDS)) -- they were about the oldest messages
end

-- Takes one key: c has .key .bucket .owner .size .answered; by: .worker .endpoint
local function take(P, cfg, c, id, by, now)
  local key = c.key
  local ctx, claim = P .. ':ctx:' .. key, P .. ':claim:' .. id
  if c.answered then
    split(cfg, ctx, claim, math.huge, tonumber(call('HGET', ctx, '.sent')))
  elseif c.size <= cfg.claim_tokens then
    call('RENAME', ctx, claim)
  else
    split(cfg, ctx, claim, cfg.claim_tokens, math.huge)
  end
  call('HSET', claim, '.key', key, '.worker', by.worker, '.endpoint', by.endpoint)
  if call('EXISTS', ctx) == 0 then
    call('ZREM', P .. ':due', key)
    call('ZREM', line_of(P, c.bucket), key)
  end
  call('HSET', P .. ':busy', c.bucket, id)
  call('ZADD', P .. ':claimed', now + cfg.lease_ms, id)
  call('HSET', P .. ':outcome:' .. key, '.claim', id, '.owner', c.owner, '.bucket', c.bucket) -- ctx held them so far
  if not c.answered and has_budgets(cfg) then
    local held = math.min(c.size, cfg.claim_tokens) + CALL_TOKENS
    call('HSET', claim, '.held', held)
    hold(P, c.owner, held)
  end
  count_wait(P, claim, now)
  return { id, call('HGETALL', claim) }
end

-- What this very call has taken already. A call whose reply was lost is sent again with the same nonce; without this,
-- the second one would take other keys under the same ids, and the messages of the first ones would be lost.
local function taken_before(P, nonce, room)
  local ids, claims = {}, {}
  for i = 1, room do ids[i] = nonce .. '-' .. (i - 1) end
  for i, lease in ipairs(call('ZMSCORE', P .. ':claimed', unpack(ids))) do
    if lease then claims[#claims + 1] = { ids[i], call('HGETALL', P .. ':claim:' .. ids[i]) } end
  end
  return claims
end

-- Keys whose budget or batch they need not wait for any longer
local function bring_back_late(P, now, limit)
  for _, row in ipairs({ 'rationed', 'batched' }) do
    for _, key in ipairs(call('ZRANGEBYSCORE', P .. ':' .. row, '-inf', now, 'LIMIT', 0, limit)) do
      bring_back(P, row, key, now)
    end
  end
end

-- Whether a due key can be claimed, or another due key of its bucket that comes before it. One that cannot leaves due: it
-- is parked while it waits for its bucket or for that key, and set aside while its budget is used up, except if its
-- answer has been paid for. One that this worker cannot read stays where it is, and so do those behind it.
-- -> the candidate, or nil and whether it was left to other workers. wire: the version that the worker takes
local function candidate(P, cfg, key, wire, now)
  local bucket, suspect, size, owner, batch, delays, needs = fields_of(P, key, '.bucket', '.suspect', '.size', '.owner',
    '.batch', '.delays', '.wire')
  if not bucket then
    call('ZREM', P .. ':due', key)
    return nil
  end
  if call('HEXISTS', P .. ':busy', bucket) == 1 then
    park(P, key, bucket)
    return nil
  end
  local first, row = first_in_line(P, bucket, key, delays, now)
  if first ~= key then
    suspect, size, owner, batch, needs = fields_of(P, first, '.suspect', '.size', '.owner', '.batch', '.wire')
  end
  if (tonumber(needs) or 1) > wire then return nil, true end
  if first ~= key then
    park(P, key, bucket)
    if row ~= 'due' then bring_back(P, row, first, now) end
  end
  local answered = batch and call('HEXISTS', P .. ':ctx:' .. first, '.answer') == 1
  local moment = not answered and waits_until(P, cfg, first, owner, now)
  if moment then
    set_aside(P, 'rationed', first, bucket, moment, now)
    return nil
  end
  return {
    key = first, bucket = bucket, suspect = suspect, size = tonumber(size) or 0, owner = owner, answered = answered,
  }
end

local PAGE_BEYOND = 256 -- due keys that a claim looks at besides those that it has room for: some are only parked
local PASSED_OVER = 5000 -- most due keys that one claim passes over because only newer workers can read them

-- Claims due keys until the room is taken -> claims, suspects waiting, keys left to newer workers
local function claim_due(P, cfg, by, room, holding, now)
  local claims, suspects, passed = {}, 0, 0
  repeat
    local page = call('ZRANGEBYSCORE', P .. ':due', '-inf', now, 'LIMIT', passed, room + PAGE_BEYOND)
    local before = passed
    for _, key in ipairs(page) do
      if #claims >= room then break end
      local c, newer = candidate(P, cfg, key, by.wire, now)
      if newer then
        passed = passed + 1
      elseif c and c.suspect and holding + #claims > 0 then
        suspects = suspects + 1
      elseif c then
        claims[#claims + 1] = take(P, cfg, c, by.nonce .. '-' .. #claims, by, now)
        if c.suspect then return claims, suspects, passed end -- a suspect is worked on alone
      end
    end
  until #page == 0 or passed - before < #page or passed >= PASSED_OVER
  return claims, suspects, passed
end

-- memd_claim_1: KEYS P; ARGV room, holding, nonce, worker, endpoint, wire version that the worker takes (missing: 1); sent
-- again it returns the same claims
-- -> { now, next due or -1, suspects waiting, state of the breaker, claim... }
local function memd_claim(keys, argv)
  local P, now = keys[1], clock()
  local cfg = config(P)
  local room, holding, nonce, worker, endpoint = tonumber(argv[1]), tonumber(argv[2]), argv[3], argv[4], argv[5]
  local host = string.match(worker, '^[^:]*')
  if is_another(P, cfg) then return { now, -1, 0, 'closed' } end -- until a scheduler has adopted this server
  local before = taken_before(P, nonce, room)
  if #before > 0 then
    local probing = false
    for _, name in ipairs({ endpoint, own_breaker(endpoint, host) }) do
      probing = probing or call('HGET', P .. ':breaker:' .. name, 'probe') == before[1][1]
    end
    return { now, -1, 0, probing and 'half-open' or 'closed', unpack(before) }
  end
  local state, moment, names = states(P, endpoint, host, now)
  if state == 'open' or state == 'probing' then return { now, moment, 0, state } end
  if state == 'half-open' then room = 1 end
  bring_back_late(P, now, room + PAGE_BEYOND)
  local by = { worker = worker, endpoint = endpoint, nonce = nonce, wire = tonumber(argv[6]) or 1 }
  local claims, suspects, passed = claim_due(P, cfg, by, room, holding, now)
  for _, name in ipairs(#claims > 0 and names or {}) do
    call('HSET', P .. ':breaker:' .. name, 'probe', claims[1][1], 'probe_until', now + cfg.lease_ms)
  end
  local ahead = call('ZRANGE', P .. ':due', passed, passed, 'WITHSCORES') -- of what it may claim
  return { now, tonumber(ahead[2]) or -1, suspects, state, unpack(claims) }
end

-- memd_extend_1: KEYS P; ARGV claim... -> for each 1, or 0 when it is not ours any more
local function memd_extend(keys, argv)
  local P, now, held = keys[1], clock(), {}
  local lease = tonumber(call('HGET', P .. ':config', 'lease_ms'))
  for i, id in ipairs(argv) do
    held[i] = call('ZSCORE', P .. ':claimed', id) and 1 or 0
    if held[i] == 1 then call('ZADD', P .. ':claimed', 'XX', now + lease, id) end
  end
  return held
end

register('memd_claim', memd_claim)
register('memd_extend', memd_extend)
