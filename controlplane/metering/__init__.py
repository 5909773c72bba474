"""Usage facts: what each instance produced, consumed and stored, hour by hour, and where each number came from.

models     hourly maxima, how far the stream has come, what it lost
selectors  usage of an hour, the records behind it, and how the meter is
services   what operators decide: losses that are settled, values that are capped
finality   which hours do not change any more: what brokers have told in full, and whom nobody waits for
metrics    how the meter is, for Prometheus
pipeline   the Spark job, which knows no Django
"""
