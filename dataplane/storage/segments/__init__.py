"""The segments of a log: batches in a file, sparse indexes, and finding things in them."""
