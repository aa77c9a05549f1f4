"""Where records come from, and waiting while something is away.

- ``file_source``: files and standard input as topics of one partition, whose offset is the row's
  number.
- ``inflation``: A ceiling on what one compressed batch of a topic may grow to.
- ``kafka_log``: a fresh look at a topic's logs, by a client of its own that belongs to no group.
- ``kafka_options``: settings into the options that all clients share.
- ``kafka_source``: A Kafka topic as a source: one consumer group, manual offsets, raw bytes.
- ``librdkafka_source``: a topic that librdkafka reads, with kafka-python's part in the group.
- ``lines``: lines of a file, a compressed file or standard input, without ever blocking past a
  timeout.
- ``recognition``: whether a partition's log is the one that was read, or another under the same
  name. Pure.
- ``retry``: what is done while something is away: pause, keep the membership alive, try again.
- ``single_writer``: an assignor that gives every partition to one member; the others are hot
  standbys.
- ``source``: where records come from: the port that the engine polls, whatever is behind it.
- ``table_reader``: rows of columnar and binary files, with the same manners as the lines of a
  text file.
"""
