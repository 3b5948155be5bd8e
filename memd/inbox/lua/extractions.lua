-- Extractions of one thread in 24 hours, as a budget beside those of tokens: over it a key waits and merges. One counts
-- when its claim ends for good, acked or buried, if the model was asked. A bucket has one claim at a time, so nothing is
-- held back for those under way.

-- Until when a key waits because its thread was extracted often enough; nil when it need not
local function thread_until(P, cfg, key, now)
  local limit = cfg.thread_day_extractions or 0
  local oldest = limit > 0 and tonumber(call('LINDEX', P .. ':extracted:' .. key, -limit) or nil)
  -- One that is ahead of the clock, which was set back, keeps nobody waiting for days.
  return oldest and oldest <= now and oldest + DAY > now and oldest + DAY or nil
end

-- Until when a key must wait for a budget, the later of the two; nil when it need not
local function waits_until(P, cfg, key, owner, now)
  local tokens, thread = rationed_until(P, cfg, owner, now), thread_until(P, cfg, key, now)
  return tokens and thread and math.max(tokens, thread) or tokens or thread
end

-- Notes the end of a claim, given its stats. The last ones are kept, as many as the limit asks about, for 24 hours.
local function note_extraction(P, cfg, c, stats, now)
  local limit, asked = cfg.thread_day_extractions or 0, c.answered
  for i = 1, #stats, 2 do asked = asked or stats[i] == 'model_calls' end
  if limit == 0 or not asked then return end
  local extracted = P .. ':extracted:' .. c.key
  call('RPUSH', extracted, now)
  call('LTRIM', extracted, -limit, -1)
  call('PEXPIRE', extracted, DAY)
end

-- The latest moment until which a key may wait for a budget
local function last_wait(cfg, now)
  return (cfg.thread_day_extractions or 0) > 0 and now + DAY or day_end(now)
end
