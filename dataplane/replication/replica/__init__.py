"""One replica of a partition: it knows nothing of the others (docs/decisions/0019).

partition        its log, and what hangs on it
partition_state  role, epochs, ISR and high watermark (pure)
remote_replica   what a leader knows of one follower (pure)
queues waiters   who waits, and where
byte_counts      what was appended and read
uncommitted      what is not known to be committed
"""
