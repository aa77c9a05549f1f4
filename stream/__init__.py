"""Sources, decoding, batching, the engine loop and dead letters. The only room that loops."""
