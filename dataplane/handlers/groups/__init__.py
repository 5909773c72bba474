"""Consumer groups: their members, their offsets, and who coordinates them.

find_coordinator  which broker keeps a group, or a transactional id
membership        JoinGroup, SyncGroup, Heartbeat, LeaveGroup; groups as administrators see them
consumer          ConsumerGroupHeartbeat, ConsumerGroupDescribe
offsets           OffsetCommit, OffsetFetch, OffsetDelete
txn_offsets       TxnOffsetCommit
rows              what requests about offsets have in common: a row for each topic and partition
"""
