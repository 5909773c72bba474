"""Admission: whether there is room for what is bought, in its cluster and within what its organisation may have.

rules      whether what is asked for fits (pure): resources, defaults, one comparison
placement  on which cluster an instance goes (pure)
places     clusters as placement looks at them; which are to be tried, what has to leave one
installed  what the installation's settings say of room, caps and prices
selectors  what is taken, and what may be: of clusters, of organisations
services   the gate; what operators set
purchases  buying and changing an instance: what REST and the console call
scheduling changes of size that are made later
retiring   whether a cluster can be switched off for good
cluster_api cluster_serializers  REST of clusters and zones
metrics    of /metrics: how much of each cluster is sold
dry_runs   what buying, changing or deleting an instance would do
"""
