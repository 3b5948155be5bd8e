-- Backups: what a backup reads of the inbox, and how an inbox, empty or at work, gets back what a backup has.

do -- none of these names is for other files: a library may have 200 local names

-- memd_contents_1: KEYS P; ARGV key... -> { key, its last number, generation, flat fields } for each claim and each context
-- of these keys. In one step, so that no message is on its way between the two.
local function memd_contents(keys, argv)
  local P, rows = keys[1], {}
  each(argv, function(key)
    local claim, seq, gen = unpack(call('HMGET', P .. ':outcome:' .. key, '.claim', '.seq', '.gen'))
    for _, hash in ipairs({ P .. ':claim:' .. (claim or ''), P .. ':ctx:' .. key }) do
      local flat = call('HGETALL', hash)
      if #flat > 0 then rows[#rows + 1] = { key, seq or '0', gen or '', flat } end
    end
  end)
  return rows
end

-- Writes argv[at] and what follows as the fields of a hash.
local function write_fields(hash, argv, at)
  local fields = {}
  for i = at, #argv do fields[#fields + 1] = argv[i] end
  call('DEL', hash)
  hset(hash, fields)
end

-- Takes out of a hash what was forgotten, or is elsewhere already. What was asked in a batch is asked anew. -> whether
-- messages stay
local function leave_out(P, hash, is_elsewhere)
  call('HDEL', hash, unpack(BATCH_FIELDS))
  local owner, bucket = unpack(call('HMGET', hash, '.owner', '.bucket'))
  local ids = identities(hash)
  local gone = #ids > 0 and forgotten(P, owner, bucket, ids) or {}
  return cut_out(hash, divide_by(hash, function(identity, i) return gone[i] or is_elsewhere(identity) end))
end

-- The numbers of another generation mean other pushes here: all messages get the next number of this one.
local function renumber(hash, seq, gen)
  for _, identity in ipairs(identities(hash)) do
    local order, _, tokens, signals, text, at = parts(call('HGET', hash, 'm:' .. identity))
    call('HSET', hash, 'm:' .. identity, message_value(order, seq, tokens, signals, text, at))
  end
  call('HSET', hash, '.from', seq, '.to', seq, '.gen', gen)
end

-- What comes later gets a higher order than what came back.
local function raise_order(P, order, now)
  if order > (tonumber(call('GET', P .. ':order')) or 0) then
    call('SET', P .. ':order', math.max(order, math.floor(now)))
  end
end

-- memd_restore_1: KEYS P; ARGV key, its last number, generation, field, value... -> how many messages are pending again: those
-- neither forgotten nor dead here. What is pending already stays once.
local function memd_restore(keys, argv)
  local P, key, seq, gen, now = keys[1], argv[1], tonumber(argv[2]), argv[3], clock()
  local source, outcome = P .. ':claim:restored', P .. ':outcome:' .. key
  local function has_died(identity) return call('SMISMEMBER', P .. ':died:' .. key, identity)[1] == 1 end
  write_fields(source, argv, 4)
  if not leave_out(P, source, has_died) then return 0 end
  local here, last = unpack(call('HMGET', outcome, '.gen', '.seq'))
  if not here then
    call('HSET', outcome, '.gen', gen, '.seq', seq)
  elseif here ~= gen then
    renumber(source, call('HINCRBY', outcome, '.seq', 1), here)
  elseif seq > tonumber(last) then
    call('HSET', outcome, '.seq', seq)
  end
  local bucket, owner, from, to = unpack(call('HMGET', source, '.bucket', '.owner', '.from', '.to'))
  local messages = #identities(source)
  raise_order(P, last_order(source), now)
  local parked = put_back(P, source, key, bucket, { '.after', 0 })
  add_to_user(P, owner, key)
  call('ZREM', P .. ':ended', key)
  set_due(P, key, bucket, parked, now, now, config(P).tick_ms)
  count(P, { 'pushes', to - from + 1, 'messages', messages })
  return messages
end

local function restore_raw(P, letter, list, died, bytes)
  count_raw_bytes(P, list, bytes or 0)
  call('ZADD', P .. ':deadraw:' .. list, died, letter)
  note_raw_letters(P, list)
end

local function restore_outcome(P, letter)
  local key, gen, from, to, code, owner, bucket = unpack(call('HMGET', P .. ':dead:' .. letter, '.key', '.gen', '.from',
    '.to', '.code', '.owner', '.bucket'))
  local outcome, died = P .. ':outcome:' .. key, P .. ':died:' .. key
  if call('HSETNX', outcome, '.gen', gen) == 1 then call('HSET', outcome, '.seq', to) end
  if call('HGET', outcome, '.gen') == gen then
    add_record(P, key, from, to, '{"state":"dead","reason":"' .. code .. '"}')
  end
  call('HSET', outcome, '.owner', owner, '.bucket', bucket)
  call('HINCRBY', outcome, '.letters', 1)
  add_to_user(P, owner, key)
  sadd(died, identities(P .. ':dead:' .. letter))
  call('PERSIST', died)
end

-- memd_restore_letter_1: KEYS P; ARGV letter, field, value... -> 1 if it is in the dead again; 0 when it is there already, or
-- all of it was forgotten or is pending
local function memd_restore_letter(keys, argv)
  local P, letter = keys[1], argv[1]
  local dead = P .. ':dead:' .. letter
  if call('EXISTS', dead) == 1 then return 0 end
  write_fields(dead, argv, 2)
  local key, list, died, bytes = unpack(call('HMGET', dead, '.key', '.origin', '.died', '.bytes'))
  local function is_pending(identity) return call('HEXISTS', P .. ':ctx:' .. key, 'm:' .. identity) == 1 end
  if list then
    restore_raw(P, letter, list, died, bytes)
  elseif leave_out(P, dead, is_pending) then
    restore_outcome(P, letter)
    raise_order(P, last_order(dead), clock())
  else
    return 0
  end
  call('ZADD', P .. ':dead', died, letter)
  return 1
end

-- memd_unsettle_1: KEYS P; ARGV ms, key... -> how many keys: what they are known to have ended with since then is dropped,
-- because the store is one of that time. The dead stay. Whoever asks for a receipt reads that nobody knows.
local function memd_unsettle(keys, argv)
  local P, now, n = keys[1], clock(), 0
  local cfg = config(P)
  each_counted(P, { unpack(argv, 2) }, function(key)
    local newer, older = known_sets(P, cfg, key, now)
    call('DEL', newer, older)
    local ended = tonumber(call('ZSCORE', P .. ':ended', key))
    local outcome, kept = P .. ':outcome:' .. key, {}
    if not ended or ended - cfg.receipt_ttl_ms > tonumber(argv[1]) then
      for line in string.gmatch(call('HGET', outcome, '.ranges') or '', '[^\n]+') do
        if string.find(line, '"state":"dead"', 1, true) then kept[#kept + 1] = line .. '\n' end
      end
      call('HSET', outcome, '.ranges', table.concat(kept))
      n = n + 1
    end
  end)
  return n
end

register('memd_contents', memd_contents, { 'no-writes' })
register('memd_restore', memd_restore)
register('memd_restore_letter', memd_restore_letter)
register('memd_unsettle', memd_unsettle)

end
