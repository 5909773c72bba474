"""Enforcement of an instance's bandwidth on this broker."""
