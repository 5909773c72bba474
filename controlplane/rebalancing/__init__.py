"""Rebalancing: load moved between the brokers of a cluster, by proposals that operators make, approve and carry out.

planner      what should be where: a plan for a cluster that is described as a value (pure)
picture      the cluster as the planner wants it, from what the control plane knows
summaries    a plan's figures as a document (pure)
models       proposals, their moves, and who said what
services     what operators do with them
causes       what calls for one that nobody has asked for (pure)
automatic    proposing and carrying out what begins by itself
carrying_out the steps of planning and of carrying out
rounds       one comparison of rows with the cluster, and what follows from it
throttling   the replication throttle, put down and taken back
upkeep       what the clock does: expiry, throttles left behind
kept         how evenly clusters are loaded, as a task saw it last
metrics      of /metrics
selectors    proposals and their progress; how evenly a cluster is loaded
"""
