"""Consumer groups: which members a group has, what each reads, and how far the group has read.

coordinator       what is asked of groups
machine shard     groups as the runtime in `dataplane.coordination` sees them; those of one partition
records           the bytes in `__consumer_offsets`, in Kafka's formats (pure)
offsets commits   what is committed; what a commit appends or refuses (pure)
pending           what transactions have committed that are open (pure)
removal sweeping  the end of groups and offsets: asked for, or their time is over
settings          what can be tuned, by Kafka's names
legacy            offsets in ZooKeeper
classic           the state machine of a group (pure)
"""
