"""Quota: the master that shares an instance's bandwidth between brokers, and the agent inside each broker.

`contracts` is what both planes agree on, `core` the pure rules, `master` and `agent` the two processes' shells.
Nothing here imports `dataplane` or `controlplane`.
"""
