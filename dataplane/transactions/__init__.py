"""Producer ids (transactions come later).

producer_ids  blocks of ids, claimed in ZooKeeper
"""
