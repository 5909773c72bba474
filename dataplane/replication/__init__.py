"""Copies of a partition: who leads, how far each replica is, what is committed, and how followers catch up.

manager                         the parts of a broker's replicas, wired; callers hold the part they use
replica                         one replica: its state (pure), its log and its queues
progress                        what has moved, and who hears of it
replica_registry configuration  which replicas are here; what their topics' settings say
accounting                      what an instance has here
role_changes leadership         roles begin and end; what the controller's words make of the replicas
appending verdicts waiting      batches in; verdicts that end a producer; requests that wait
isr                             proposals of new ISRs, on their way to the controller
truncation throttling           where two logs part; throttled replication
following                       what is wanted of leaders, and taking what comes
serving                         answering followers and fetch sessions
upkeep                          by the clock, or beside requests
"""
