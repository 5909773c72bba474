"""Rebalancing: load moved between the brokers of a cluster, by proposals that operators make, approve and carry out.

planner    what should be where: a plan for a cluster that is described as a value (pure)
"""
