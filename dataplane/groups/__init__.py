"""Consumer groups: who is in a group, who reads what, how far they have read.

Pure: `classic` (the state machine: `model`, what a group is; `events`, what happens to it and what follows; `rebalance`,
`joining`, `state`), `records` (bytes in ``__consumer_offsets``), `offsets`, `commits`.
Shell: `coordinator` (what is asked of groups), `machine` (groups as the runtime in `dataplane.coordination` sees them),
`shard` (the groups of one partition), `removal` and `sweeping`, `legacy` (offsets in ZooKeeper).
"""
