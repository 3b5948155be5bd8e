-- The dead: letters that are tried again, or thrown away. Letters of raw pushes, which anybody can make, have a cap.

-- The counters have the length of each row: the accounts that read figures may read counters.
local function note_raw_letters(P, list)
  call('HSET', P .. ':stats', 'raw_letters:' .. list, call('ZCARD', P .. ':deadraw:' .. list))
end

-- Counts the bytes of a raw letter that is kept, or is not kept any longer; returns how many all of the list have.
local function count_raw_bytes(P, list, bytes) return call('HINCRBY', P .. ':stats', 'raw_bytes:' .. list, bytes) end

local function remove_raw_letter(P, list, letter)
  local bytes = tonumber(call('HGET', P .. ':dead:' .. letter, '.bytes'))
  if bytes then count_raw_bytes(P, list, -bytes) end
  call('DEL', P .. ':dead:' .. letter)
  call('ZREM', P .. ':dead', letter)
  call('ZREM', P .. ':deadraw:' .. list, letter)
  note_raw_letters(P, list)
end

local HEAVY = 1000 -- letters that one call removes at most for their bytes

-- Removes the oldest letters of a raw list: those over the caps of letters and of bytes, and those whose time is over;
-- `limit` at most, except for the bytes. Letters of contexts are in no such row, and never go by themselves.
local function trim_raw_letters(P, cfg, list, now, limit)
  if not cfg.raw_cap then return end
  local row = P .. ':deadraw:' .. list
  local over, old = call('ZCARD', row) - cfg.raw_cap, call('ZCOUNT', row, '-inf', now - cfg.raw_ttl_ms)
  local due, discarded = math.min(math.max(over, old), limit), 0
  local heavy = cfg.raw_bytes and count_raw_bytes(P, list, 0) > cfg.raw_bytes
  if due <= 0 and not heavy then return end
  for i, letter in ipairs(call('ZRANGE', row, 0, (heavy and math.max(due, HEAVY) or due) - 1)) do
    if i > due and count_raw_bytes(P, list, 0) <= cfg.raw_bytes then break end
    remove_raw_letter(P, list, letter)
    discarded = i
  end
  count(P, { 'discarded', discarded, 'discarded:' .. list, discarded })
end

-- Builds before 11 kept raw letters without a row: a page of all letters is looked through, until none is left.
local function find_raw_letters(P, limit)
  local cursor = call('HGET', P .. ':config', 'raw_letters') or '0'
  if cursor == 'found' then return end
  local page = call('ZSCAN', P .. ':dead', cursor, 'COUNT', limit)
  for i = 1, #page[2], 2 do
    local dead = P .. ':dead:' .. page[2][i]
    local list, raw = peek(dead, '.origin', '.raw')
    if list and raw then
      if call('HSETNX', dead, '.bytes', #raw) == 1 then count_raw_bytes(P, list, #raw) end
      call('ZADD', P .. ':deadraw:' .. list, page[2][i + 1], page[2][i])
      note_raw_letters(P, list)
    end
  end
  call('HSET', P .. ':config', 'raw_letters', page[1] == '0' and 'found' or page[1])
end

-- What every sweep does for the letters of raw pushes
local function sweep_raw_letters(P, now, limit)
  find_raw_letters(P, limit)
  local cfg = config(P)
  for _, list in ipairs(call('HKEYS', P .. ':taken')) do trim_raw_letters(P, cfg, list, now, limit) end
end

-- A push that cannot be taken in becomes a letter of its raw list. fields: .code first, .error .at
local function add_raw_letter(P, list, letter, fields, raw, now)
  local order = call('GET', P .. ':order') or 0
  hset(P .. ':dead:' .. letter, fields)
  call('HSET', P .. ':dead:' .. letter, '.died', now, '.raw', raw, '.bytes', #raw, '.origin', list, '.order', order)
  count_raw_bytes(P, list, #raw)
  call('ZADD', P .. ':dead', now, letter)
  call('ZADD', P .. ':deadraw:' .. list, now, letter)
  note_raw_letters(P, list)
  count(P, { 'dead', 1, 'dead:' .. fields[2], 1 })
  local cfg = config(P)
  add_event(P, cfg, { 'event', 'dead', 'pushes', 1, 'code', fields[2], 'letter', letter, 'list', list })
  trim_raw_letters(P, cfg, list, now, 10)
end

-- Removes the record of a letter's end, so that its receipts tell what becomes of it now.
local function remove_record(P, key, from, to)
  local outcome, kept = P .. ':outcome:' .. key, {}
  for line in string.gmatch(call('HGET', outcome, '.ranges') or '', '[^\n]+') do
    local first, last, text = string.match(line, '^(%d+) (%d+) (.*)$')
    local is_its_end = first == from and last == to and string.find(text, '"state":"dead"', 1, true)
    if not is_its_end then kept[#kept + 1] = line .. '\n' end
  end
  call('HSET', outcome, '.ranges', table.concat(kept))
end

local function retry(P, cfg, letter, now)
  local dead = P .. ':dead:' .. letter
  local key, bucket, owner, from, to, code, raw, list = unpack(call('HMGET', dead, '.key', '.bucket', '.owner', '.from',
    '.to', '.code', '.raw', '.origin'))
  call('ZREM', P .. ':dead', letter)
  if raw then -- never taken in: the scheduler looks at it again, first of all
    call('LPUSH', list, raw)
    remove_raw_letter(P, list, letter)
  elseif key then
    srem(P .. ':died:' .. key, identities(dead))
    remove_record(P, key, from, to)
    call('HINCRBY', P .. ':outcome:' .. key, '.letters', -1)
    local parked = put_back(P, dead, key, bucket, { '.attempts', 0, '.delays', 0, '.after', 0 })
    call('HDEL', P .. ':ctx:' .. key, '.suspect', '.formless')
    add_to_user(P, owner, key)
    set_due(P, key, bucket, parked, now, now, cfg.tick_ms)
    local pushes = to - from + 1
    count(P, { 'dead', -pushes, 'dead:' .. code, -pushes, 'revived', pushes })
  else
    return 0
  end
  count(P, { 'retried', 1 })
  return 1
end

-- memd_retry_1: KEYS P; ARGV letter... -> how many of the dead are pending again, in their old places
local function memd_retry(keys, argv)
  local cfg, now, done = config(keys[1]), clock(), 0
  each_counted(keys[1], argv, function(letter) done = done + retry(keys[1], cfg, letter, now) end)
  return done
end

-- If the messages of a letter that was thrown away are pushed again, they are still known to have died, for a while.
local function drop(P, cfg, letter, now)
  local dead = P .. ':dead:' .. letter
  local key, list = unpack(call('HMGET', dead, '.key', '.origin'))
  call('ZREM', P .. ':dead', letter)
  if list then
    remove_raw_letter(P, list, letter)
    return 1
  end
  if key and call('HINCRBY', P .. ':outcome:' .. key, '.letters', -1) <= 0 then
    call('PEXPIRE', P .. ':died:' .. key, cfg.receipt_ttl_ms)
    call('ZADD', P .. ':ended', now + cfg.receipt_ttl_ms, key)
  end
  return call('DEL', dead)
end

-- memd_drop_1: KEYS P; ARGV letter... -> how many of the dead were thrown away
local function memd_drop(keys, argv)
  local cfg, now, done = config(keys[1]), clock(), 0
  each_counted(keys[1], argv, function(letter) done = done + drop(keys[1], cfg, letter, now) end)
  if done > 0 then count(keys[1], { 'dropped', done }) end
  return done
end

register('memd_retry', memd_retry)
register('memd_drop', memd_drop)
