-- The header of a push: JSON, made by the client (memd/inbox/verbs.py) or by the scheduler for a raw push. Its fields:
--   v version: 2 where a message has a name, or with user_name (what the user is called), 3 where one has a mark or a source;
--   key bucket owner (hashes), ids { thread, user, agent }, gen (of the receipt), m { { identity, tokens, signals } for each
--   message; behind the signals # and the percent-encoded id of the project that it is marked for }, now (true: due at
--   once), trace (a traceparent; one that has not its form is left out), dropped (counters of turns that were filtered out), cut (of blocks cut out of turns)
-- Counts, sizes and forms are checked here; the drain checks again what the messages say.

local function header(text)
  local ok, h = pcall(cjson.decode, text)
  return ok and h or nil
end

local function is_hash(value, length)
  return type(value) == 'string' and #value == length and string.find(value, '^[0-9a-f]+$') ~= nil
end

local function is_whole(value, most)
  return type(value) == 'number' and value >= 0 and value <= most and value % 1 == 0
end

local function ids_error(h)
  if not (is_hash(h.key, 32) and is_hash(h.bucket, 32) and is_hash(h.owner, 32) and is_hash(h.gen, 8)) then
    return 'E_HEADER_HASH: key, bucket and owner are 32 hexadecimal digits, gen is 8'
  end
  if type(h.ids) ~= 'table' or #h.ids ~= 3 then return 'E_HEADER_IDS: ids are thread, user and agent' end
  for i, id in ipairs(h.ids) do
    if type(id) ~= 'string' or #id > 256 or (#id == 0 and i < 3) then
      return 'E_HEADER_IDS: an id is a string of 1 to 256 bytes'
    end
  end
  return nil
end

local function user_name_error(h)
  local name = h.user_name
  if name == nil then return nil end
  if h.v < 2 then return 'E_VERSION: user_name needs version 2 of the wire format' end
  if type(name) ~= 'string' or #name == 0 or #name > 256 or string.find(name, '%c') then
    return 'E_USER_NAME: user_name is text of 1 to 64 characters'
  end
  return nil
end

local function has_trace(h)
  return type(h.trace) == 'string' and #h.trace == 55 and string.find(h.trace, '^00%-%x+%-%x+%-%x%x$') ~= nil
end

local function counters_error(counters, field)
  if counters == nil then return nil end
  local wrong = 'E_' .. string.upper(field) .. ': ' .. field .. ' is a list of counters'
  if type(counters) ~= 'table' or #counters > 64 or #counters % 2 ~= 0 then return wrong end
  for i = 1, #counters, 2 do
    local name = counters[i]
    if type(name) ~= 'string' or #name > 64 or not string.find(name, '^' .. field .. ':[a-z_]+$') then return wrong end
    if not is_whole(counters[i + 1], 1e6) then return wrong end
  end
  return nil
end

local function message_error(m, v)
  if type(m) ~= 'table' or type(m[1]) ~= 'string' or #m[1] ~= 37 or not string.find(m[1], '^[in][0-9a-f]+$') then
    return 'E_IDENTITY: an identity is i or n and 36 hexadecimal digits'
  end
  if not is_whole(m[2], 1e9) then return 'E_TOKENS: tokens are a whole number' end
  local signals, mark = without_mark(type(m[3]) == 'string' and m[3] or '')
  if not (signals == '-' or string.find(signals, '^[a-z][a-z,]*$')) or #signals > 200 then
    return 'E_SIGNALS: signals are names joined by commas, or -'
  end
  if mark ~= '' and v < 3 then return 'E_VERSION: the mark of a project needs version 3 of the wire format' end
  if mark ~= '' and (#mark > 769 or not string.find(mark, '^#[%w%%._~-]+$')) then
    return 'E_PROJECT_ID: the mark of a message is # and a percent-encoded id'
  end
  return nil
end

-- What is wrong with a push whose messages begin at argv[at], as "<code>: <sentence>"; nil when nothing is.
local function push_error(cfg, h, argv, at)
  if type(h) ~= 'table' or (h.v ~= 1 and h.v ~= 2 and h.v ~= 3) then
    return 'E_VERSION: this server takes versions 1 to 3 of the wire format'
  end
  local wrong = ids_error(h) or user_name_error(h)
  if wrong then return wrong end
  if type(h.m) ~= 'table' then return 'E_MESSAGES_EMPTY: a push carries at least one message' end
  if #h.m > cfg.max_messages then
    return 'E_MESSAGES_COUNT: a push carries at most ' .. cfg.max_messages .. ' messages'
  end
  if #h.m == 0 and not h.dropped then return 'E_MESSAGES_EMPTY: a push carries at least one message' end
  if #h.m ~= #argv - at + 1 then return 'E_MESSAGES_COUNT: the header must name each message once' end
  wrong = counters_error(h.dropped, 'dropped') or counters_error(h.cut, 'cut')
  if wrong then return wrong end
  local bytes, seen = 0, {}
  for i, m in ipairs(h.m) do
    wrong = message_error(m, h.v) or seen[m[1]] and 'E_IDENTITY: a push names each identity once'
    if wrong then return wrong end
    seen[m[1]] = true
    bytes = bytes + #argv[at + i - 1]
  end
  if bytes > cfg.max_push_bytes then return 'E_PUSH_SIZE: a push has at most ' .. cfg.max_push_bytes .. ' bytes' end
  return nil
end
