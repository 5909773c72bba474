"""Instances on a broker: listeners, namespaces, whitelists, who is on a connection, and the buckets of their limits.

registry          specs in ZooKeeper become instances with listeners
instance session  one instance as served here; who is on a connection
access whitelist  who may do what, decided in one place; which addresses a list lets in (pure)
gate              limits become buckets; the storage fence
"""
