"""Transactions, and the ids of producers: who may write under which id and epoch, and what becomes of what was written.

coordinator       what is asked of transactional ids
machine shard     transactional ids as the runtime in `dataplane.coordination` sees them; those of one partition
counts limits     what each instance has at this coordinator; what it may have
markers           telling every partition of a transaction that it is over
model events      what a transactional id is; what happens to it, and what follows (pure)
state ending      the state machine: `handle` decides; how a transaction ends (pure)
draft             a transactional id while an event is handled (pure)
records           the bytes in `__transaction_state`, in Kafka's formats (pure)
settings          what can be tuned, by Kafka's names
verification      whether a producer may begin to write to a partition
producer_ids      blocks of producer ids, claimed in ZooKeeper
"""
