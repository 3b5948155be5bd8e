-- A server that became the primary because the one before went away. It has what was replicated until then: the functions,
-- the keys, perhaps not the last writes. Its clock is another one.

-- memd_adopt_1: KEYS P -> how many leases begin anew. From now on this server is the one that is claimed from.
register('memd_adopt', function(keys)
  local P, now = keys[1], clock()
  local cfg, leases = config(P), 0
  for _, id in ipairs(call('ZRANGE', P .. ':claimed', 0, -1)) do
    leases = leases + 1
    call('ZADD', P .. ':claimed', now + cfg.lease_ms, id)
  end
  rebase(keys)
  call('HSET', P .. ':config', 'run_id', run_id())
  wake(P)
  return leases
end)
