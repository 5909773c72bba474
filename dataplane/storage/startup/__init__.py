"""From a directory to a log: recovery, new replicas, and whether anything was lost.

recovery      finds the segments and the end of a log, cuts what was half written
founding      a new replica's directory
unclean_loss  since when nothing of this broker's logs has been lost
"""
