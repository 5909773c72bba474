"""Throttle rules: limits that a tenant sets for topics and clients of an instance. The truth is in the cluster."""
