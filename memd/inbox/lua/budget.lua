-- Budgets of tokens per day, of one user and of all. They are looked at when a key is claimed, and charged with the
-- move that ends the claim. Until then an estimate is held back, so that claims under way do not overrun a budget
-- together.

local CALL_TOKENS = 2000 -- held back for a call besides its text: roughly its instructions, facts and answer

local function day_end(now) return (math.floor(now / DAY) + 1) * DAY end

local function has_budgets(cfg) return (cfg.total_day_tokens or 0) + (cfg.user_day_tokens or 0) > 0 end

-- Until when a user's calls must wait for a budget; nil when they need not. A budget that only the tokens held back use
-- up is looked at again soon, since the claims under way may use fewer.
local function rationed_until(P, cfg, owner, now)
  if not has_budgets(cfg) then return nil end
  local limits, moment = { cfg.total_day_tokens or 0, cfg.user_day_tokens or 0 }, nil
  local spent = call('HMGET', P .. ':spent:' .. math.floor(now / DAY), '.total', owner)
  local held = call('HMGET', P .. ':held', '.total', owner)
  for i, limit in ipairs(limits) do
    local used = tonumber(spent[i]) or 0
    if limit > 0 and used >= limit then return day_end(now) end
    if limit > 0 and used + (tonumber(held[i]) or 0) >= limit then
      moment = math.min(now + cfg.backoff_max_ms, day_end(now))
    end
  end
  return moment
end

-- Holds tokens back for a claim; with a negative number they are free again.
local function hold(P, owner, tokens)
  for _, who in ipairs({ '.total', owner }) do
    if call('HINCRBY', P .. ':held', who, tokens) <= 0 then call('HDEL', P .. ':held', who) end
  end
end

-- Counts tokens against one budget of the day. The call that reaches it leaves a notice, which the scheduler logs once.
local function charge(P, cfg, spent, who, limit, tokens, now)
  if limit == 0 then return end
  local used = call('HINCRBY', spent, who, tokens)
  call('PEXPIRE', spent, 2 * DAY)
  if used >= limit and used - tokens < limit then
    call('RPUSH', P .. ':notices', (who == '.total' and 'total' or who) .. ' ' .. limit .. ' ' .. day_end(now))
    call('PEXPIRE', P .. ':notices', 2 * DAY)
    local whose = who == '.total' and { 'total' } or { 'user', 'user', who }
    add_event(P, cfg, { 'event', 'budget', 'tokens_per_day', limit, 'until', day_end(now), 'budget', unpack(whose) })
  end
end

local KEPT_DAYS = 90 -- for so long the use and the facts of a day are kept

-- Counts what calls used, the `used:<kind>:<model>` among the stats: by day and model, and against the budgets; and the
-- facts that were added, by day. owner: false for a user who was forgotten.
local function spend(P, cfg, owner, stats, now)
  local tokens, day = 0, math.floor(now / DAY)
  local usage, facts = P .. ':usage:' .. day, P .. ':facts:' .. day
  for i = 1, #stats, 2 do
    if stats[i] == 'facts_added' then
      call('INCRBY', facts, stats[i + 1])
      call('PEXPIRE', facts, KEPT_DAYS * DAY)
    end
    local kind, model = string.match(stats[i], '^used:([a-z_]+):(.+)$')
    if kind then
      call('HINCRBY', usage, kind .. ':' .. model, stats[i + 1])
      if not string.find(kind, 'calls', 1, true) then tokens = tokens + stats[i + 1] end
    end
  end
  if tokens == 0 then return end
  call('PEXPIRE', usage, KEPT_DAYS * DAY)
  charge(P, cfg, P .. ':spent:' .. day, '.total', cfg.total_day_tokens or 0, tokens, now)
  if owner then charge(P, cfg, P .. ':spent:' .. day, owner, cfg.user_day_tokens or 0, tokens, now) end
end

-- The stats of a move: counters, and among them what its calls used.
local function count_and_spend(P, cfg, owner, stats, now)
  count(P, stats)
  spend(P, cfg, owner, stats, now)
end
