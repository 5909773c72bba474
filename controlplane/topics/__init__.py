"""Topics of an instance as its tenant manages them. The cluster is the truth; its own are the whitelist and the note of each.

configs      every configuration of a topic, and where it comes from
batches      the same configurations for many topics, by one operation
notes        what people write about topics, and tags
"""
