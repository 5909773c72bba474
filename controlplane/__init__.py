"""The control plane: what tenants and operators say they want, and the machinery that makes the cluster so.

Tenants speak REST; the database is the truth for instances, ZooKeeper carries the wanted state to the brokers, and the
cluster itself is the truth for topics. See ARCHITECTURE.md.
"""
