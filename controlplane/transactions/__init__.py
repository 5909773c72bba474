"""Transactions of an instance: what is open, what waits for it, ending one. The truth is in the cluster.

outlook      what ending one would do: the dry runs
"""
