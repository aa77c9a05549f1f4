-- Puts a rebuilt hash in the place of the old one, unless the old one is already further on.
--
-- KEYS[1]  the hash        KEYS[2]  the rebuilt one        ARGV[1]  the commit that it shows
-- Returns 1 if it was put in place, 0 if it was dropped.

local shown = redis.call('HGET', KEYS[1], 'epoch')
if shown and tonumber(shown) > tonumber(ARGV[1]) then
  redis.call('DEL', KEYS[2])
  return 0
end
redis.call('RENAME', KEYS[2], KEYS[1])
return 1
