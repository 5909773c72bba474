"""Organisations, and who belongs to them in which role.

invitations     links by which people come in
"""
