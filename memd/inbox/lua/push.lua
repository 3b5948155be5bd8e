-- memd_push, the one function that apps call: the trusted door.

-- memd_push: KEYS P; ARGV header, message... -> what merge returns, or an error
redis.register_function('memd_push', function(keys, argv)
  local P = keys[1]
  local cfg = push_settings(P)
  if not cfg then return redis.error_reply('MEMDNOTREADY no scheduler has ever started on this server') end
  if not cfg.enabled then return { 'disabled', '', '', 0, 0, clock(), 'disabled' } end
  if call('HGET', P .. ':config', 'full') == '1' then return redis.error_reply('MEMDFULL the server is near its memory limit') end
  local h = header(argv[1])
  local wrong = push_error(cfg, h, argv, 2)
  if wrong then return redis.error_reply('MEMDREJECTED ' .. wrong) end
  if #h.m == 0 then -- filtering left no message: it is only counted
    count(P, h.dropped)
    if h.cut then count(P, h.cut) end
    count(P, { 'skipped', 1, 'skipped:nothing_left', 1 })
    return { 'skipped', h.key, '', 0, 0, clock(), 'nothing_left' }
  end
  return merge(P, cfg, h, argv, 2)
end)
