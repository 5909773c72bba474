"""Transactions: who produces under an id, what is in a transaction, how it ends, and what operators see of it.

init_producer_id  InitProducerId, with a transactional id and without
adding            AddPartitionsToTxn, AddOffsetsToTxn: partitions become part of a transaction, or are asked about by brokers
ending            EndTxn
listing           DescribeTransactions, ListTransactions
fencing           what a producer is called that is not the latest, by version
"""
