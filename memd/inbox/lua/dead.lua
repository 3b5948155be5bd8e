-- The dead: letters that are tried again, or thrown away.

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
    call('DEL', dead)
  elseif key then
    srem(P .. ':died:' .. key, identities(dead))
    remove_record(P, key, from, to)
    call('HINCRBY', P .. ':outcome:' .. key, '.letters', -1)
    local parked = put_back(P, dead, key, { '.attempts', 0, '.delays', 0, '.after', 0 })
    call('HDEL', P .. ':ctx:' .. key, '.suspect')
    call('SADD', P .. ':user:' .. owner, key)
    set_due(P, key, bucket, parked, now, now, cfg.tick_ms)
    local pushes = to - from + 1
    count(P, { 'dead', -pushes, 'dead:' .. code, -pushes })
  else
    return 0
  end
  count(P, { 'retried', 1 })
  return 1
end

-- memd_retry_1: KEYS P; ARGV letter... -> how many of the dead are pending again, in their old places
local function memd_retry(keys, argv)
  local cfg, now, done = config(keys[1]), clock(), 0
  for _, letter in ipairs(argv) do done = done + retry(keys[1], cfg, letter, now) end
  return done
end

-- If the messages of a letter that was thrown away are pushed again, they are still known to have died, for a while.
local function drop(P, cfg, letter, now)
  local dead = P .. ':dead:' .. letter
  local key = call('HGET', dead, '.key')
  call('ZREM', P .. ':dead', letter)
  if key and call('HINCRBY', P .. ':outcome:' .. key, '.letters', -1) <= 0 then
    call('PEXPIRE', P .. ':died:' .. key, cfg.receipt_ttl_ms)
    call('ZADD', P .. ':ended', now + cfg.receipt_ttl_ms, key)
  end
  return call('DEL', dead)
end

-- memd_drop_1: KEYS P; ARGV letter... -> how many of the dead were thrown away
local function memd_drop(keys, argv)
  local cfg, now, done = config(keys[1]), clock(), 0
  for _, letter in ipairs(argv) do done = done + drop(keys[1], cfg, letter, now) end
  if done > 0 then count(keys[1], { 'dropped', done }) end
  return done
end

register('memd_retry', memd_retry)
register('memd_drop', memd_drop)
