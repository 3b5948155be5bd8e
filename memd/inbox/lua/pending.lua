-- Reading pending messages, for prompts that include what nothing was extracted from yet.

do -- none of these names is for other files: a library may have 200 local names

local PENDING_BYTES = 262144 -- of one answer: more than any prompt takes

-- Adds the messages of one context or claim, page by page, so that a large one never blocks the server.
-- argv from 3 on: the buckets. Returns the bytes that are left.
local function read_messages(P, hash, argv, answer, seen, room)
  local bucket, thread = peek(hash, '.bucket', '.thread')
  local asked_for = false
  for i = 3, #argv do asked_for = asked_for or argv[i] == bucket end
  if not asked_for then return room end
  local cursor = '0'
  repeat
    local page = call('HSCAN', hash, cursor, 'COUNT', 100)
    cursor = page[1]
    for i = 1, #page[2], 2 do
      local field, value = page[2][i], page[2][i + 1]
      if is_message(field) and not seen[hash .. field] and room > 0 then
        seen[hash .. field] = true
        room = room - #value
        answer[#answer + 1] = { bucket, thread, string.sub(field, 3), value }
      end
    end
  until cursor == '0' or room <= 0
  return room
end

-- memd_pending_1: KEYS P; ARGV owner, cursor, bucket... -> { cursor, { bucket, thread, identity, value }... }: the
-- pending and claimed messages of these buckets, of one page of the user's keys, in no order. The cursor is 0 at the
-- end, and when one answer would grow too large.
local function memd_pending(keys, argv)
  local P, room, seen = keys[1], PENDING_BYTES, {}
  local page = call('SSCAN', P .. ':user:' .. argv[1], argv[2], 'COUNT', 500)
  local answer = { page[1] }
  for _, key in ipairs(page[2]) do
    local id = call('HGET', P .. ':outcome:' .. key, '.claim')
    if id then room = read_messages(P, P .. ':claim:' .. id, argv, answer, seen, room) end
    room = read_messages(P, P .. ':ctx:' .. key, argv, answer, seen, room)
    if room <= 0 then
      answer[1] = '0'
      break
    end
  end
  return answer
end

register('memd_pending', memd_pending, { 'no-writes' })

end
