"""Copies of a partition: who leads, how far each replica is, what is committed, and how followers catch up."""
