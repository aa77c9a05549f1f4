-- A worker's sign of life, by the server's clock: hosts need not agree on the time.
--
-- KEYS[1]  the hash of workers        ARGV[1]  the worker's name

local now = redis.call('TIME')
redis.call('HSET', KEYS[1], ARGV[1], now[1] * 1000 + math.floor(now[2] / 1000))
return 1
