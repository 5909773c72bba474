"""Copies of a partition: who leads, how far each replica is, what is committed, and how followers catch up.

partition          one replica: its log, and what hangs on it
partition_state    role, epochs, ISR, high watermark (pure); `remote_replica` is a follower as its leader knows it
queues waiters     who waits for something of one partition (pure)
byte_counts        what is counted of one; `uncommitted` is what may yet be lost
manager            makes and wires the parts below: all replicas of a broker
replica_registry configuration role_changes progress appending waiting verdicts accounting throttling
leadership         the controller's words: who leads, who follows, who stops
isr                proposals to the controller
truncation         where two logs part
following          copying from leaders
serving            answering followers; fetch sessions
upkeep             by the clock, or beside requests
"""
