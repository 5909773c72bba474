"""Consumer groups of an instance: members, lag, moving offsets. The truth is in the cluster."""
