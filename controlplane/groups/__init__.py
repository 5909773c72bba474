"""Consumer groups of an instance: members, lag, moving offsets. The truth is in the cluster.

judging      whether a group may be changed in a way, and what it is now
making       one group of a name is made at a time
outlook      what a change would do: the dry runs
reasons      why it is not known how old a lag is
earlier      how far behind groups were a minute ago, as the history tells it
rebalances   which groups have rebalanced since the round before
rounds       what every group of a cluster has still to read, for the history
"""
