"""Organisations, and who belongs to them in which role."""
