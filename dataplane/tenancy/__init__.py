"""Instances on a broker: listeners, namespaces, whitelists, who is on a connection, and the buckets of their limits."""
