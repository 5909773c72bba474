"""Consumer groups: who is in a group, who reads what, how far they have read.

Pure: `classic` (the state machine: `model`, what a group is; `events`, what happens to it and what follows; `rebalance`,
`joining`, `state`), `records` (bytes in ``__consumer_offsets``), `offsets`, `commits`.
Shell: `coordinator` (owns the `shard`s that this broker leads), `removal`, `log` (appends and reads), `timers`,
`legacy` (offsets in ZooKeeper).
"""
