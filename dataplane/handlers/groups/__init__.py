"""Consumer groups: their members, their offsets, and who coordinates them.

find_coordinator  which broker keeps a group
membership        JoinGroup, SyncGroup, Heartbeat, LeaveGroup; groups as administrators see them
consumer          ConsumerGroupHeartbeat, ConsumerGroupDescribe
offsets           OffsetCommit, OffsetFetch, OffsetDelete
"""
