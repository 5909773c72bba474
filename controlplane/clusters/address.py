"""Where a physical cluster is reached: the first argument of every door to one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """A cluster's ZooKeeper. Its brokers and its flow master register there, and are looked up there.

    Nothing opens a door without one: a function that made do with "the" cluster would mix two of them one day.
    """

    id: int  # of the row in the database
    zookeeper_hosts: str  # host:port,host:port with an optional /chroot
