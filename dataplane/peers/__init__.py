"""Connections between this broker and others of the cluster.

outbound      authenticated, pipelined, with a timeout for every call
internal_tls  how these, and those to the internal listener, are secured
"""
