"""What a topic holds and who reads it, and hints that follow from that: asked of brokers at that moment, and of the meter.

figures      sizes, offsets, rates, groups; what is not known is named
groups       which consumer groups read it, and how far behind they are
written      how many bytes each partition was written in the last hour
skew         how unevenly partitions are filled, and leaders spread (pure)
hints        what somebody might want to look at, from what is known alone (pure)
"""
