"""Wheels that are made of a part of the project: `make wheel`.

build         `sluice-clients`: which modules it has, what it needs, and the file itself
clients.md    its README, as it is shown where it is installed from
"""
