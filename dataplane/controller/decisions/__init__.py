"""What the controller decides, pure: leaders, ISRs, where replicas are placed.

elections        who leads, and who is in sync
alter_partition  what a proposal of a new ISR is worth
placement        where the replicas of a new topic go
creation         what may be created, with its assignment
"""
