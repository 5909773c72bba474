"""Organisations, and who belongs to them in which role.

in_use          whether one is in use, and the lock for what must not happen while it is being deleted
invitations     links by which people come in
operators       an organisation as operators of the service find it
"""
