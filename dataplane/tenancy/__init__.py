"""Instances on a broker: listeners, namespaces, whitelists."""
