"""Copies of a partition: who leads, how far each replica is, what is committed, and how followers catch up.

manager                         the parts of a broker's replicas, wired; callers hold the part they use
partition partition_state       one replica with its log and queues; its role, epochs, ISR and high watermark (pure)
progress remote_replica         what has moved, and who hears of it; what a leader knows of one follower (pure)
replica_registry configuration  which replicas are here; what their topics' settings say
accounting byte_counts          what an instance has here; the bytes of one partition
role_changes leadership         roles begin and end; what the controller's words make of the replicas
appending uncommitted verdicts  batches in; what is not known to be committed; verdicts that end a producer
waiting waiters queues          requests that wait, and the queues of a partition
isr                             proposals of new ISRs, on their way to the controller
truncation throttling           where two logs part; throttled replication
following                       what is wanted of leaders, and taking what comes
serving                         answering followers and fetch sessions
upkeep                          by the clock, or beside requests
"""
