"""Why an instance waited, who was behind it, and what would help: another size, other leaders, or that others make room.

merging     throttled intervals that are alike, as one reason (pure)
who         which client and topic moved most while it lasted, in words (pure)
witnesses   asking brokers for that while it lasts, and keeping it for a week
proposals   the size that would have done (pure)
reasons     all of this for an instance, with prices
spreading   which of an instance's partitions another replica should lead (pure)
leaders     having them led so, by an operation
scores      how much of a spike of latency others may be behind (pure)
neighbours  minutes of brokers, their scores, and who the neighbours were
models      what was kept
api         their REST
serializers their JSON
"""
