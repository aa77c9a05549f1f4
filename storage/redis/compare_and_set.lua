-- Moves one stream's statistics from one commit to the next, in one or more calls.
--
-- KEYS[1]  the hash: "epoch" holds the number of the last commit that it shows, every other
--          field a cluster: 8 bytes version (big-endian), 8 bytes epoch, float64 bytes
-- ARGV[1]  number of the commit that is being shown
-- ARGV[2]  "1" in the last call for that commit, which makes it the hash's epoch
-- ARGV[3]  how many (field, value) pairs follow; the fields after them are clusters that ended
--
-- Returns {outcome, rows left alone}. Outcome 1: done. 0: the hash already shows this commit or
-- a later one. -1: a commit before this one is missing (the server was flushed or was away), so
-- the hash cannot be brought up to date by what this commit changed.

local shown = redis.call('HGET', KEYS[1], 'epoch')
if not shown or tonumber(shown) < tonumber(ARGV[1]) - 1 then
  return {-1, 0}
end
if tonumber(shown) >= tonumber(ARGV[1]) then
  return {0, 0}
end

-- Byte by byte: Lua's own comparison of strings follows the server's locale, and its numbers
-- lose integers above 2^53.
local function is_newer(value, stored)
  for i = 1, 8 do
    local new, old = string.byte(value, i), string.byte(stored, i)
    if new ~= old then
      return new > old
    end
  end
  return false
end

local left_alone = 0
local pairs_end = 3 + 2 * tonumber(ARGV[3])
for i = 4, pairs_end, 2 do
  local stored = redis.call('HGET', KEYS[1], ARGV[i])
  if stored and #stored >= 16 and not is_newer(ARGV[i + 1], stored) then
    left_alone = left_alone + 1
  else
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end
for i = pairs_end + 1, #ARGV do
  redis.call('HDEL', KEYS[1], ARGV[i])
end
if ARGV[2] == '1' then
  redis.call('HSET', KEYS[1], 'epoch', ARGV[1])
end
return {1, left_alone}
