"""What is done by the clock, or beside the requests: syncs, deletions, moves, stray logs.

housekeeping  laggards, checkpoints, retention: by the clock
syncing       logs forced to disk while the broker runs
deletion      DeleteRecords
moves         replicas that change their data directory
stray_logs    logs that nobody wants any more
"""
