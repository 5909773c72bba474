"""The lag of consumer groups over time: every 10 s for an hour, every minute for 15 days, every hour for 400 days.

rows         what a step of a group has (pure)
samples      a step of ten seconds as one row of an instance
looks        a short round of each cluster's groups each ten seconds
sampling     one round of each cluster's groups a minute
rolling      hours of minutes, and forgetting
expiry       what a group has not read and is about to expire
rates        what a group read, and what came to what it reads, between two whole rounds (pure)
paces        how fast partitions are written to, and when what is unread is pushed out by size (pure)
rebalances   which groups have rebalanced, by the hour
selectors    a group's history in some steps
known        groups by a part of their name
"""
