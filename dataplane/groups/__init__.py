"""Consumer groups: who is in a group, who reads what, how far they have read.

Pure: `model` (what a group is), `events` (what happens to it and what follows), `rebalance`, `joining`, `state` (the
state machine), `records` (bytes in ``__consumer_offsets``), `offsets`, `commits`.
Shell: `coordinator` (owns the `shard`s that this broker leads), `removal`, `log` (appends and reads), `timers`,
`legacy` (offsets in ZooKeeper).
"""
