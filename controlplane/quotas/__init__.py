"""How a bought limit is shared out between brokers, as the active master tells it, and who had to wait since when.

selectors  what a cluster's flow master says about instances and brokers
figures    the same while no master answers: what was said last, with its age
matrix     of all instances and brokers at once, for pages that draw it (pure)
services   throttled intervals, pulled from the masters' journals
history    the intervals that were kept, and the guarantee day by day
report     the quota report: each day beside what was bought
moments    moments as text that sorts as time does
"""
