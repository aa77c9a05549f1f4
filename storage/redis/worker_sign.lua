-- A worker's sign of life, by the server's clock: hosts need not agree on the time.
--
-- KEYS[1]  the hash of workers
-- ARGV[1]  the worker's name          ARGV[2]  its role, told unless it is 'all'

local now = redis.call('TIME')
local sign = string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000))
if ARGV[2] ~= 'all' then
  sign = sign .. ' ' .. ARGV[2]
end
redis.call('HSET', KEYS[1], ARGV[1], sign)
return 1
