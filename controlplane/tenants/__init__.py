"""Organisations, and who belongs to them in which role.

invitations     links by which people come in
operators       an organisation as operators of the service find it
"""
