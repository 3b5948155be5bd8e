-- The inbox: every key, and every move between the keys. One function call is one atomic move.
-- memd/inbox/library.py joins the files of this folder to two libraries: memd_push, and memd_drain_1 for all others.
--
--   memd:in, memd:in:<app>      list   raw pushes, as RPUSH brought them
--   memd:events                 stream how pushes ended, for apps, while events are kept (events.lua)
--   P = {memd}                         the prefix of all other keys, given as KEYS[1]
--   P:ctx:<key>                 hash   what is pending of a key:
--        m:<identity>                  "<order> <seq> <tokens>@<at> <signals> <message>"; signals joined by ",", or "-", and
--                                      behind them "#<percent-encoded id>" of the project that it is marked for;
--                                      at: ms at which it was first accepted. Of a raw push: the ms at which its list
--                                      was last seen without it, or where nobody had looked, minus the ms at which it
--                                      was taken in. "@<at>" is missing in what builds before 13 wrote
--        .thread .user .agent          the ids themselves
--        .bucket .owner                hash of the bucket, hash of the user
--        .first .last                  ms of the first and of the last push that count
--        .size .tokens                 tokens of all messages; tokens of those that count towards flush_tokens
--        .from .to .gen                the sequence numbers that are pending, and the receipt generation
--        .attempts                     attempts that its content cost
--        .delays                       releases that cost no attempt, since the last attempt
--        .after                        ms before which it is not due, whatever is pushed
--        .now .suspect                 it was flushed; its lease ran out, or its worker died
--        .parked                       where it waits if not in due: 1 (for its bucket), rationed or batched
--        .wire                         2, 3: its messages or pushes have fields of this version of the wire format, so
--                                      no worker that takes only older ones may claim it
--        .user_names                   what its pushes called the user, the newest last, joined by line ends
--        .traces                       the traceparents of its pushes, the newest last, joined by line ends
--        .urgent                       it was pushed or flushed to be done now, and goes into no batch
--        .batch .sent .print           its request in a batch: the id, the order of its last message, what it asked for
--        .answer                       the answer to that request, until a claim takes it; or, in a claim, an answer
--                                      that could not be stored, kept with .batch .sent .print as of a batch
--        .formless                     JSON: how many replies were no update, by identity of the messages asked about
--   P:wrong:<key>                      what was at P:ctx:<key> but was no hash
--   P:wrong                     set    the keys of these
--   P:due                       zset   key -> ms at which it may be claimed
--   P:rationed                  zset   key -> ms until which it waits for a budget
--   P:batched                   zset   key -> ms at which it is due again even if its batch has not answered
--   P:batches                   zset   batch -> ms at which the endpoint is next asked for it
--   P:batch:<id>                hash   request -> "<key> <hash of user> <tokens held>" until it is answered;
--                                      .made: ms; .at: the endpoint
--   P:claim:<id>                hash   what a claim took: the fields of ctx, and .key .worker (its name)
--                                      .endpoint; .held: tokens held back
--   P:claimed                   zset   claim -> ms at which its lease ends
--   P:busy                      hash   bucket -> the claim that is working on it
--   P:parked:<bucket>           zset   due keys that wait for their bucket, by due time
--   P:parked:line:<bucket>      zset   the bucket's pending keys by the order of their newest message: the line in which
--                                      its due keys are claimed. A user's only key may be missing (since build 33).
--                                      (Accounts of builds before 16 may write to this name.)
--   P:known:<key>:<n>           set    identities taken in during the nth known_ttl_ms since 1970. It expires when
--                                      number n+1 is over, so there are two at most. A hint for size and due time only
--   P:dead                      zset   letter -> ms at which it died
--   P:dead:<letter>             hash   what gave up: the fields of its claim, and .code .error .died; or .raw .bytes
--                                      .origin, and .order .at as of a message that came at that moment
--   P:deadraw:<raw list>        zset   letter -> ms at which it died, of the raw pushes of a list; capped
--   P:died:<key>                set    identities in the dead
--   P:outcome:<key>             hash   .seq .gen .claim; .run: where sentinels choose the server, which one began .gen;
--                                      .gens: "<earlier generation> <its last number> "...; from the first claim on
--                                      .owner .bucket; .letters: how many of
--                                      it are dead; .ranges: lines "<from> <to> <record>", the last 50
--   P:forgotten:<owner>         hash   mirror of a user's tombstone: .salt .generation .wished, and a field per salted
--                                      hash of an identity
--   P:ended                     zset   key -> ms at which its outcome may be forgotten
--   P:user:<owner>              set    the keys of a user: pending, claimed, dead, with an outcome
--   P:breaker:<endpoint>        hash   until (ms) while open, wait, delay, code, opened, probe (claim), probe_until;
--                                      failed: failures in a row; route: 1 if no HTTP status came; formless: replies
--                                      in a row that were no update
--   P:breaker:<endpoint>@<host> hash   the same for the calls of one host that got no HTTP status (TTL)
--   P:breaker:<endpoint>:hosts  hash   host -> ms of its last call, negative if it got no HTTP status (TTL)
--   P:breakers                  set    endpoints whose breaker was ever open
--   P:learnt:<endpoint>         string "<name> <name>...": what an endpoint was found not to take (TTL)
--   P:spent:<day>               hash   hash of user, .total -> tokens used on a UTC day, while there is a budget (TTL)
--   P:extracted:<key>           list   ms at which the last extractions of a thread ended, while they are limited (TTL)
--   P:held                      hash   hash of user, .total -> tokens held back for claims, while there is a budget
--   P:usage:<day>               hash   "<kind>:<model>" -> what calls used on a UTC day (TTL)
--   P:facts:<day>               string facts added on a UTC day (TTL)
--   P:notices                   list   "<hash of user, or total> <tokens> <ms>": budgets reached, for the log
--   P:config                    hash   the settings that the functions need, and the build of the loaded libraries;
--                                      push: those of a push once more, in one field
--   P:stats                     hash   counters
--   P:hours                     list   "<hour since 1970> <keys pending> <most that were> <counter>...", the newest first:
--                                      the counters as they were when the hour was last looked at (hours.lua)
--   P:unread                    set    raw lists that no scheduler reads, because the config does not name their apps
--   P:waiting_parts             hash   "<host> <part>" -> ms of the last note that memd up there cannot start it (TTL)
--   P:taken                     hash   raw list -> pushes taken in so far
--   P:order                     string the counter that orders messages
--   P:wake                      list   at most one element: wakes the scheduler
--   rq:worker:<name>            hash   RQ's own, gone when the worker is; our field memd: the version it runs

local function call(...) return redis.call(...) end -- redis.call does not exist yet while a library loads

local CHUNK = 1000 -- unpack() takes some 8,000 values at most
local DAY = 86400000 -- ms; days are UTC's, by the server's clock

local function clock()
  local t = call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function config(P)
  local flat, cfg = call('HGETALL', P .. ':config'), {}
  for i = 1, #flat, 2 do cfg[flat[i]] = tonumber(flat[i + 1]) or flat[i + 1] end
  return cfg
end

-- Which server this is. Only asked where sentinels may make another one the primary: it takes 10 us.
local function run_id() return string.match(call('INFO', 'server'), 'run_id:(%x+)') end

-- Whether another server than the one that was adopted last has become the primary. It has what was replicated until
-- then, so leases and tombstones have to be looked at before anything is claimed (failover.lua).
local function is_another(P, cfg) return cfg.failover == 1 and call('HGET', P .. ':config', 'run_id') ~= run_id() end

local function wake(P)
  if call('LLEN', P .. ':wake') == 0 then call('LPUSH', P .. ':wake', '1') end
end

-- stats: name, n, name, n...
local function count(P, stats)
  for i = 1, #stats, 2 do call('HINCRBY', P .. ':stats', stats[i], stats[i + 1]) end
end

-- Something else than a hash at a key's place is nothing that memd wrote. It is renamed, so that it stops nothing, and
-- counted for the doctor.
local function set_wrong_aside(P, key)
  for _, row in ipairs({ 'due', 'rationed', 'batched' }) do call('ZREM', P .. ':' .. row, key) end
  call('RENAME', P .. ':ctx:' .. key, P .. ':wrong:' .. key)
  call('SADD', P .. ':wrong', key)
  count(P, { 'wrong_type', 1 })
end

-- Fields of a key's context; nothing when there is none. One of a wrong type is set aside.
local function fields_of(P, key, ...)
  local fields = redis.pcall('HMGET', P .. ':ctx:' .. key, ...)
  if not fields.err then return unpack(fields) end
  set_wrong_aside(P, key)
end

-- Fields of a hash; nothing when it is of a wrong type. For functions that may not write.
local function peek(hash, ...)
  local fields = redis.pcall('HMGET', hash, ...)
  if not fields.err then return unpack(fields) end
end

-- Does something with each item of a page. One with a key of a wrong type is passed over. Returns how many these were.
local function each(items, act)
  local wrong = 0
  for i, item in ipairs(items) do
    local done, failure = pcall(act, item, i)
    if not done then
      local text = type(failure) == 'table' and failure.err or failure
      if not string.find(text, 'WRONGTYPE', 1, true) then error(failure, 0) end
      wrong = wrong + 1
    end
  end
  return wrong
end

-- The same in a function that may write: it counts them.
local function each_counted(P, items, act)
  local wrong = each(items, act)
  if wrong > 0 then count(P, { 'wrong_type', wrong }) end
end

local function chunk(values, i) return unpack(values, i, math.min(i + CHUNK - 1, #values)) end

-- Adds a field and its value to a list for hset.
local function put(fields, name, value)
  local n = #fields
  fields[n + 1], fields[n + 2] = name, value
end

-- A command with more values than one call may take, in several calls.
local function in_chunks(command)
  return function(key, values)
    for i = 1, #values, CHUNK do call(command, key, chunk(values, i)) end
  end
end

local hset, hdel = in_chunks('HSET'), in_chunks('HDEL') -- the values of hset: name, value, name, value...
local sadd, srem = in_chunks('SADD'), in_chunks('SREM')

local function is_message(field) return string.sub(field, 1, 2) == 'm:' end

-- The value of a message field -> order, seq, tokens, signals, message, and the time at which it was accepted or ''
local function parts(value)
  local order, seq, tokens, at, signals, text = string.match(value, '^(%d+) (%d+) (%d+)@?(%-?%d*) (%S+) (.*)$')
  return order, seq, tokens, signals, text, at
end

local function message_value(order, seq, tokens, signals, text, at)
  local accepted = at == '' and '' or string.format('@%d', at) -- %d costs a fourth of what .. does to write a number
  return string.format('%d %d %d%s %s %s', order, seq, tokens, accepted, signals, text)
end

-- The earlier of two times at which a message was accepted; '' is unknown, and so the earliest. The lower figure counts,
-- with a minus if either has one: then it may have come at any time before.
local function earlier(a, b)
  if a == '' or b == '' then return '' end
  a, b = tonumber(a), tonumber(b)
  local first = math.min(math.abs(a), math.abs(b))
  return (a < 0 or b < 0) and -first or first
end

local MOST_NAMES = 8 -- of one user, in one key; and of traces

-- The names (or traces) in either list, those of the second one last, each once; the newest stay.
local function join_names(a, b)
  local names = {}
  for name in string.gmatch(a .. '\n' .. b, '[^\n]+') do
    for i, other in ipairs(names) do
      if other == name then
        table.remove(names, i)
        break
      end
    end
    names[#names + 1] = name
  end
  return table.concat(names, '\n', math.max(1, #names - MOST_NAMES + 1))
end

-- Signals as they are stored -> their names, and the mark behind them with its '#', or ''
local function without_mark(signals) return string.match(signals, '^([^#]*)(.*)$') end

-- The signals in either of two lists. The mark of the first one stays, and is none if it has none: a message is marked
-- for a project by the push that brings it first.
local function union(a, b)
  local mark
  a, mark = without_mark(a)
  b = without_mark(b)
  if a == '-' then return b .. mark end
  for signal in string.gmatch(b, '[^,-]+') do
    if not string.find(',' .. a .. ',', ',' .. signal .. ',', 1, true) then a = a .. ',' .. signal end
  end
  return a .. mark
end

-- The order of the newest message in a context, a claim or a letter
local function last_order(hash)
  local last, cursor = 0, '0'
  repeat
    local page = call('HSCAN', hash, cursor, 'COUNT', CHUNK)
    cursor = page[1]
    for i = 1, #page[2], 2 do
      if is_message(page[2][i]) then last = math.max(last, tonumber((parts(page[2][i + 1])))) end
    end
  until cursor == '0'
  return last
end

-- The identities of the messages in a context, a claim or a letter
local function identities(hash)
  local ids = {}
  for _, field in ipairs(call('HKEYS', hash)) do
    if is_message(field) then ids[#ids + 1] = string.sub(field, 3) end
  end
  return ids
end

-- All functions but memd_push have the wire version in their name. They run even when the server is at its memory
-- limit: what they do makes room.
local function register(name, callback, flags)
  redis.register_function { function_name = name .. '_1', callback = callback, flags = flags or { 'allow-oom' } }
end
