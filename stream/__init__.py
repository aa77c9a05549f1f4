"""Sources, decoding, batching, the engine loop and dead letters. The only room that loops.

- ``errors``: errors of the stream room.
- ``optional``: libraries that are no dependencies, imported where something needs one.
- ``settings``: settings of the stream room: the stream itself, its Kafka connection, its schema.
"""
