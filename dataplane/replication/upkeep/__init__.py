"""What is done by the clock, or beside the requests: syncs, deletions, moves, stray logs."""
