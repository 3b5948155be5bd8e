-- The raw door: the head of a raw list is taken in and removed in one step.

do -- none of these names is for other files: a library may have 200 local names

-- memd_take_1: KEYS P, raw list; ARGV sha1 of the expected head, then one of
--   push, header, message...  |  dead, id, code, error, at  |  skip, reason, counter, n...
-- -> taken, or moved when the head is another one by now. `at`, also in the header: the ms at which the list was last
-- seen without this push; missing where nobody had looked, so that it may have come at any time before
local function memd_take(keys, argv)
  local P, list = keys[1], keys[2]
  local head = call('LINDEX', list, 0)
  if not head or redis.sha1hex(head) ~= argv[1] then return 'moved' end
  local now, verb = clock(), argv[2]
  if verb == 'push' then
    local cfg, h = push_settings(P), header(argv[3])
    local wrong = push_error(cfg, h, argv, 4)
    if wrong then return redis.error_reply('MEMDREJECTED ' .. wrong) end
    local answer = merge(P, cfg, h, argv, 4, tonumber(h.at) or -now)
    if answer[1] == 'skipped' then count(P, { 'skipped', 1, 'skipped:' .. answer[7], 1 }) end
  elseif verb == 'dead' then
    local fields = { '.code', argv[4], '.error', argv[5], '.at', argv[6] or -now }
    add_raw_letter(P, list, argv[3], fields, head, now)
  else
    count(P, { 'skipped', 1, 'skipped:' .. argv[3], 1, unpack(argv, 4) })
  end
  call('LPOP', list)
  call('HINCRBY', P .. ':taken', list, 1)
  return 'taken'
end

-- memd_heads_1: KEYS raw list; ARGV index, count, bytes -> pushes from this index on: `count` at most, and none after
-- those that reach `bytes`, so that large pushes come one by one
local function memd_heads(keys, argv)
  local list, heads, bytes = keys[1], {}, 0
  for i = 0, argv[2] - 1 do
    local head = bytes < tonumber(argv[3]) and call('LINDEX', list, argv[1] + i)
    if not head then break end
    heads[#heads + 1] = head
    bytes = bytes + #head
  end
  return heads
end

register('memd_take', memd_take)
register('memd_heads', memd_heads, { 'no-writes' })

end
