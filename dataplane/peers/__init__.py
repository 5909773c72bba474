"""Connections that this broker opens to others."""
