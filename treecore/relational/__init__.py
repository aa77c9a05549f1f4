"""The infinite relational model: networks whose vertices fall into blocks."""
