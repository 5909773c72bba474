"""Organisations, who belongs to them in which role, and the scope that keeps their data apart."""
