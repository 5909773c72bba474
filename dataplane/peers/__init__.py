"""Connections that this broker opens to others.

outbound  authenticated, pipelined, with a timeout for every call
"""
