-- A server that became the primary because the one before went away. It has what was replicated until then: the functions,
-- the keys, perhaps not the last writes. Its clock is another one.

-- memd_strike_1: KEYS P; ARGV owner, cursor -> next cursor, messages removed. What a user's tombstone names goes from
-- what is pending: the forgetting had removed it, but that was not replicated. Claims and letters are looked at when
-- they are stored or brought back.
register('memd_strike', function(keys, argv)
  local P, owner, now, struck = keys[1], argv[1], clock(), 0
  local cfg = config(P)
  local page = call('SSCAN', P .. ':user:' .. owner, argv[2], 'COUNT', FORGET_PAGE)
  each_counted(P, page[2], function(key)
    local ctx = P .. ':ctx:' .. key
    local bucket = call('HGET', ctx, '.bucket')
    local ids = bucket and identities(ctx) or {}
    local gone = #ids > 0 and forgotten(P, owner, bucket, ids)
    if not gone then return end
    local found = divide_by(ctx, function(_, i) return gone[i] end)
    struck = struck + #found.gone
    if #found.gone == 0 or cut_out(ctx, found) then return end
    for _, row in ipairs({ 'due', 'rationed', 'batched' }) do call('ZREM', P .. ':' .. row, key) end
    call('ZREM', P .. ':parked:' .. bucket, key)
    call('ZREM', line_of(P, bucket), key)
    call('ZADD', P .. ':ended', now + cfg.receipt_ttl_ms, key)
  end)
  return { page[1], struck }
end)

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
