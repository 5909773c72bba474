"""Consumer groups: which members a group has, what each reads, and how far the group has read.

coordinator       what is asked of groups
machine shard     groups as the runtime in `dataplane.coordination` sees them; those of one partition
records           the bytes in `__consumer_offsets`, in Kafka's formats (pure)
offsets commits   what is committed; what a commit appends or refuses (pure)
pending           what transactions have committed that are open (pure)
removal sweeping  the end of groups and offsets: asked for, or their time is over
settings topics   what can be tuned, by Kafka's names; what groups need to know of the cluster's topics
heartbeats        requests about groups of the consumer protocol
legacy            offsets in ZooKeeper
classic           the state machine of a group of the classic protocol, in which its members decide who reads what (pure)
consumer          the one of the consumer protocol (KIP-848), in which the coordinator decides (pure)
"""
