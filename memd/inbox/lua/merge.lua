-- The merge: a push joins what is pending of its key. memd_push and the raw door both end here.
--
--   1. read_pending   what is pending of the key
--   2. weigh          which of its messages count, and where they go
--   3. number         sequence number and orders for what is new
--   4. due_at         when the key is due
--   5. save           all of it, in one write

-- The settings that a push needs, from the one field where they lie together: to read each by itself, or all of them, would
-- be a fifth of its work. nil before any scheduler has started. library.py writes them in this order.
local function push_settings(P)
  local enabled, failover, quiet, max_wait, tokens, backoff_max, tick, known_ttl, messages, bytes = string.match(
    call('HGET', P .. ':config', 'push') or '',
    '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  if not enabled then return nil end
  return {
    enabled = enabled == '1', failover = failover == '1', quiet_ms = quiet + 0, max_wait_ms = max_wait + 0,
    flush_tokens = tokens + 0, backoff_max_ms = backoff_max + 0, tick_ms = tick + 0, known_ttl_ms = known_ttl + 0,
    max_messages = messages + 0, max_push_bytes = bytes + 0,
  }
end

-- A message without id and predecessor is also known by thread, role and content alone (docs/decisions/0001).
local function is_unanchored(identity)
  return string.sub(identity, 1, 1) == 'n' and string.sub(identity, 26) == '000000000000'
end

-- The pending message with the same thread, role and content as an unanchored one
local function pending_twin(ctx, identity)
  if not is_unanchored(identity) then return nil end
  local prefix = 'm:' .. string.sub(identity, 1, 25)
  for _, field in ipairs(call('HKEYS', ctx)) do
    if string.sub(field, 1, 27) == prefix then return string.sub(field, 3) end
  end
  return nil
end

-- The two sets of identities taken in lately: the one that grows now and the one before, and the ms that the first is
-- still read. One set that only ends when a thread falls silent would grow for ever in a thread that never does.
local function known_sets(P, cfg, key, now)
  local n = math.floor(now / cfg.known_ttl_ms)
  local name = P .. ':known:' .. key .. ':'
  return name .. n, name .. n - 1, (n + 2) * cfg.known_ttl_ms - now
end

-- For each identity 1 or 0: whether it was taken in lately, and whether it is in the dead; nil where no identity is.
local function hints(P, cfg, key, ids, now)
  local newer, older = known_sets(P, cfg, key, now)
  local died = P .. ':died:' .. key
  if call('EXISTS', newer, older, died) == 0 then return nil, nil end
  local known, before = call('SMISMEMBER', newer, unpack(ids)), call('SMISMEMBER', older, unpack(ids))
  for i = 1, #ids do known[i] = math.max(known[i], before[i]) end
  return known, call('SMISMEMBER', died, unpack(ids))
end

-- Which identities were forgotten: { index = true }, or nil. memd/memory/store/tombstone.py makes the same hashes.
local function forgotten(P, owner, bucket, ids)
  local tomb = P .. ':forgotten:' .. owner
  local salt = call('HGET', tomb, '.salt')
  if not salt then return nil end
  local found = {}
  for i, identity in ipairs(ids) do
    local forms = { identity }
    if is_unanchored(identity) then forms[2] = string.sub(identity, 1, 25) end
    for _, form in ipairs(forms) do
      for _, scope in ipairs({ '', bucket }) do
        if call('HEXISTS', tomb, redis.sha1hex(salt .. ':' .. scope .. ':' .. form)) == 1 then found[i] = true end
      end
    end
  end
  return found
end

local function read_pending(P, key)
  local ctx = P .. ':ctx:' .. key
  local first, last, tokens, size, after, now, parked, gen, seq, wire = fields_of(P, key, '.first', '.last', '.tokens',
    '.size', '.after', '.now', '.parked', '.gen', '.to', '.wire')
  return {
    ctx = ctx, fresh = not first, first = first and first + 0, last = last and last + 0, tokens = (tokens or 0) + 0,
    size = (size or 0) + 0, after = (after or 0) + 0, now = now, parked = parked, gen = gen,
    seq = seq and seq + 0, wire = (wire or 1) + 0,
  }
end

-- The signals of a message that is not pending. While a worker has it, which was pushed before then, it is marked as
-- that one: a claim that is given back brings its mark along, but one that dies would leave this one with another mark.
local function signals_of_new(pending, m)
  local signals, mark = without_mark(m[3])
  local claimed = mark ~= '' and pending.claim and call('HGET', pending.claim, 'm:' .. m[1])
  if claimed then mark = select(2, without_mark((select(4, parts(claimed))))) end
  return signals .. mark
end

-- Puts one message of a push where it goes: a new one behind all others; one that is pending already stays in its place
-- and gets the newest text and all signals, but no other mark. Returns the tokens that this adds.
local function place(pending, push, m, text)
  local identity, tokens, signals = m[1], m[2], m[3]
  local old = not pending.fresh and call('HGET', pending.ctx, 'm:' .. identity)
  if not old and not pending.fresh then
    local twin = pending_twin(pending.ctx, identity)
    if twin then identity, old = twin, call('HGET', pending.ctx, 'm:' .. twin) end
  end
  if not old then
    push.new[#push.new + 1] =
      { identity = identity, tokens = tokens, signals = signals_of_new(pending, m), text = text }
    return tokens
  end
  local order, seq, old_tokens, old_signals, old_text, at = parts(old)
  local all = union(old_signals, signals)
  if text == old_text and all == old_signals then
    if at ~= '' and earlier(at, push.at) ~= tonumber(at) then -- a raw push that came before this one, and waited in its list
      local value = message_value(order, seq, old_tokens, all, text, earlier(at, push.at))
      call('HSET', pending.ctx, 'm:' .. identity, value)
    end
    return 0
  end
  put(push.changed, 'm:' .. identity, message_value(order, seq, tokens, all, text, earlier(at, push.at)))
  return tokens - old_tokens
end

-- Which messages of a push count. Those that were forgotten or are in the dead are left out. Those taken in lately are
-- kept, since the ledger alone decides what is new, but they move neither the due time nor the tokens for flush_tokens.
local function weigh(P, cfg, h, argv, at, pending, accepted, now)
  local ids = {}
  for i, m in ipairs(h.m) do ids[i] = m[1] end
  local known, died = hints(P, cfg, h.key, ids, now)
  local gone = forgotten(P, h.owner, h.bucket, ids)
  local push = { at = accepted, now = now, new = {}, changed = {}, kept = 0, counted = 0, forgotten = 0, size = 0, tokens = 0 }
  for i, m in ipairs(h.m) do
    if gone and gone[i] then
      push.forgotten = push.forgotten + 1
    elseif not (died and died[i] == 1) then
      local grown = place(pending, push, m, argv[at + i - 1])
      push.kept = push.kept + 1
      push.size = push.size + grown
      if not (known and known[i] == 1) then
        push.counted = push.counted + 1
        push.tokens = push.tokens + grown
      end
    end
  end
  return push
end

-- The generation of the number `seq` where the server may fail over. A new primary may lack the last numbers that the one
-- before gave, and gives them to others. So it begins a generation of its own: no receipt tells another push's outcome.
-- The receipts of the eight generations before stay good.
local function generation(outcome, fresh, seq)
  local gen, run, gens = unpack(call('HMGET', outcome, '.gen', '.run', '.gens'))
  local here = run_id()
  if run == here then return gen end
  gens = (gens or '') .. gen .. ' ' .. (seq - 1) .. ' '
  local n = select(2, string.gsub(gens, '%S+ %d+ ', ''))
  if n > 8 then gens = string.match(gens, '^%S+ %d+ (.*)$') end
  call('HSET', outcome, '.gen', fresh, '.run', here, '.gens', gens)
  return fresh
end

-- Gives a push that changes anything the next sequence number of its key, and its new messages the next orders; the last
-- of these is the key's place in line, if it needs one. A push that brings nothing new leaves the key in its place.
local function number(P, cfg, h, pending, push)
  if #push.new == 0 and #push.changed == 0 and not pending.fresh then return end
  local outcome = P .. ':outcome:' .. h.key
  pending.seq = call('HINCRBY', outcome, '.seq', 1)
  if pending.seq == 1 then
    pending.gen = h.gen
    call('HSET', outcome, '.gen', h.gen)
    if cfg.failover then call('HSET', outcome, '.run', run_id()) end
  elseif cfg.failover then
    pending.gen = generation(outcome, h.gen, pending.seq)
  elseif not pending.gen then
    pending.gen = call('HGET', outcome, '.gen')
  end
  local order = call('INCRBY', P .. ':order', #push.new) - #push.new
  -- The first of all is not below what documents hold if this server has lost its data; nor is any where it may lack the
  -- last orders that another primary gave.
  if order == 0 or (cfg.failover and order < math.floor(push.now)) then
    order = call('INCRBY', P .. ':order', math.floor(push.now) - order) - #push.new
  end
  for i, m in ipairs(push.new) do
    put(push.changed, 'm:' .. m.identity, message_value(order + i, pending.seq, m.tokens, m.signals, m.text, push.at))
  end
  if pending.fresh then
    if not add_to_user(P, h.owner, h.key) then line_up(P, h.bucket, h.key, order + #push.new) end
  elseif #push.new > 0 then -- a key without a place was alone when it came
    call('ZADD', line_of(P, h.bucket), 'XX', 'GT', order + #push.new, h.key)
  end
  count(P, { 'pushes', 1, 'messages', #push.new })
  if h.dropped then count(P, h.dropped) end
  if h.cut then count(P, h.cut) end
end

-- When a key is due. The debounce:
--
--     due = min(last push + quiet, first push + max_wait), at once when it is urgent or has flush_tokens pending,
--     but not before `after`, the backoff of an attempt that failed (a push to be done now overrides that)
--
-- Worked example, with quiet 30 s and max_wait 300 s. Pushes at 12:00:00, 12:00:20 and 12:00:45 make the key due at
-- 12:00:30, then 12:00:50, then 12:01:15: each push restarts the 30 s. If a push comes every 20 s for ever, the due
-- time moves on until 12:05:00, first push + 300 s, and stays there. If an attempt failed and the key must not be
-- tried before 12:06:00, a push at 12:05:10 (due by itself at 12:05:00) makes it due at 12:06:00. Once the due time
-- has passed, no push moves it again: the key keeps its place before those that became due later.
local function due_at(P, cfg, key, pending, now)
  local due = math.min(pending.last + cfg.quiet_ms, pending.first + cfg.max_wait_ms)
  if pending.now or pending.tokens >= cfg.flush_tokens then due = now end
  if pending.after > now then due = math.max(due, math.min(pending.after, now + cfg.backoff_max_ms)) end
  local before = not pending.fresh and not pending.parked and tonumber(call('ZSCORE', P .. ':due', key))
  if before and before <= now then return before end
  return due
end

-- What is pending with the push. The clock may have been set back: the first push must not lie in the future.
local function join(pending, push, h, now)
  pending.first = pending.fresh and now or math.min(pending.first, now)
  pending.last = (push.counted > 0 or pending.fresh) and now or pending.last or now
  pending.size = pending.size + push.size
  pending.tokens = pending.tokens + push.tokens
  if h.now then pending.now, pending.after = h.now, 0 end
end

local function save(P, h, pending, push)
  local fields = { '.last', pending.last, '.tokens', pending.tokens, '.size', pending.size, '.to', pending.seq }
  if pending.fresh then
    fields = {
      '.first', pending.first, '.last', pending.last, '.tokens', pending.tokens, '.size', pending.size,
      '.from', pending.seq, '.to', pending.seq, '.gen', pending.gen,
      '.thread', h.ids[1], '.user', h.ids[2], '.agent', h.ids[3], '.bucket', h.bucket, '.owner', h.owner,
    }
  end
  if h.v > pending.wire then put(fields, '.wire', h.v) end
  if h.user_name then
    local before = not pending.fresh and call('HGET', pending.ctx, '.user_names')
    put(fields, '.user_names', join_names(before or '', h.user_name))
  end
  if h.trace and has_trace(h) then
    local before = not pending.fresh and call('HGET', pending.ctx, '.traces')
    put(fields, '.traces', join_names(before or '', h.trace))
  end
  if h.now then
    put(fields, '.now', 1)
    put(fields, '.urgent', 1)
    put(fields, '.after', 0)
  end
  local n = #fields
  for i, value in ipairs(push.changed) do fields[n + i] = value end
  hset(pending.ctx, fields)
end

-- `h` is the header, `at` the index of the first message in `argv`, `accepted` the time of a raw push.
-- -> { status (queued, merged, skipped), key, gen, seq, due, now, reason if skipped }
local function merge(P, cfg, h, argv, at, accepted)
  local now, key = clock(), h.key
  local pending = read_pending(P, key)
  local claim = h.v > 2 and call('HGET', P .. ':outcome:' .. key, '.claim')
  pending.claim = claim and P .. ':claim:' .. claim
  local push = weigh(P, cfg, h, argv, at, pending, accepted or now, now)
  if push.kept == 0 then
    return { 'skipped', key, '', 0, 0, now, push.forgotten > 0 and 'forgotten' or 'already_dead' }
  end
  if h.now and pending.parked == 'batched' then -- it does not wait for its batch any longer
    bring_back(P, 'batched', key, now)
    pending.parked = false
  end
  number(P, cfg, h, pending, push)
  join(pending, push, h, now)
  local due = due_at(P, cfg, key, pending, now)
  save(P, h, pending, push)
  set_due(P, key, h.bucket, pending.parked, due, now, cfg.tick_ms)
  if pending.parked == 'rationed' or pending.parked == 'batched' then
    due = tonumber(call('ZSCORE', P .. ':' .. pending.parked, key)) or due
  end
  return { pending.fresh and 'queued' or 'merged', key, pending.gen, pending.seq, due, now, '' }
end
