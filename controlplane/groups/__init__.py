"""Consumer groups of an instance: members, lag, moving offsets. The truth is in the cluster.

rounds       what every group of a cluster has still to read, for the history
"""
