"""For other brokers, the controller and operators: never on a tenant's listener.

replication control      what the controller sends; what is asked of it
txn_markers              what coordinators of transactions send
reassignments elections  for operators
partitions               what they ask about very many partitions
backlogs                 how many bytes a reader has still to read
connections              who is connected to an instance, who was refused, and who moves how much
"""
