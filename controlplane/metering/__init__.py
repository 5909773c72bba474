"""Usage facts: what each instance produced, consumed and stored, hour by hour, and where each number came from.

models     hourly maxima, how far the stream has come, what it lost
selectors  usage of an hour, the records behind it, and how the meter is
services   what operators decide: losses that are settled, values that are capped
finality   which hours do not change any more: what brokers have told in full, and whom nobody waits for
elastic    what is billed of elastic bandwidth, from the masters' journals
recomputed which days the raw records have been compared with, and what was different
folding    key rows of days that are over become instance-hours and topic-days: when, and why not
sharing    a day's bytes of topics, shared out among parts of the day (pure)
jobs       the jobs of the pipeline: their runs, and what operators ask to be run
metrics    how the meter and the jobs are, for Prometheus
pipeline   the jobs of Spark, which know no Django
"""
