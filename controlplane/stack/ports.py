"""The ports that a stack needs, and whether they are free: looked at before anything is installed, and again at the start.

Standard library and what needs no more, since `bootstrap` asks before there is anything else.
"""

import socket
from collections.abc import Collection, Mapping

from controlplane.stack.layout import HIGHEST_BASE, HOST, LOWEST_BASE, SPAN, Layout

BROUGHT_BY = {"zookeeper": "ZOOKEEPER_HOSTS", "redis": "REDIS_URL"}
"""Stores that a stack starts itself, unless the user says by this variable where one is."""


def own_stores(environment: Mapping[str, str]) -> frozenset[str]:
    """Those that the stack starts itself."""
    return frozenset(name for name, variable in BROUGHT_BY.items() if not environment.get(variable))


def own_ports(layout: Layout, stores: Collection[str]) -> dict[int, str]:
    """The ports that must be free before the start, each with the process that wants it. `stores`: those of the stack."""
    ports = {layout.base: "the console"}
    if "zookeeper" in stores:
        ports |= {layout.zookeeper_port_of(cluster): "ZooKeeper" for cluster in layout.numbers}
    if "redis" in stores:
        ports[layout.redis_port] = "Redis"
    ports |= {layout.broker_port(broker): f"broker {broker}" for broker in layout.brokers}
    for master in layout.masters:
        ports |= {layout.report_port(master): f"master {master}", layout.master_http_port(master): f"master {master}"}
    return ports


def problem(layout: Layout, stores: Collection[str]) -> str | None:
    """What to say of the first port that is taken; None: all are free."""
    for port, owner in sorted(own_ports(layout, stores).items()):
        if not _is_free(port):
            other = layout.base + SPAN if layout.base + SPAN <= HIGHEST_BASE else LOWEST_BASE
            return (
                f"port {port}, which {owner} needs, is taken by another program: stop that one, "
                f"or move the whole stack with `make up PORT={other}`."
            )
    return None


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
