"""Mirrors that copy into an instance: how far each is, by what it says in a topic of the instance. Nothing is kept here.

records       what such a record says: pure
selectors     the last one of each mirror
api serializers    REST
"""
