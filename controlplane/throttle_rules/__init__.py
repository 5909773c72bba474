"""Throttle rules: limits that a tenant sets for topics, clients and groups of an instance. The truth is in the cluster."""
