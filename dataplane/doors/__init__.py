"""The five doors through which a broker touches the world: clock, network, files, ZooKeeper, background work.

Everything else in `dataplane` is a function of what comes in through them, so a whole cluster can run in one process on
a virtual clock, with a faulty network and disk, from a seed that replays bit for bit (`tests/simulation`). Randomness and
ids are drawn from `Doors.random`. Nothing else may call `time`, `socket`, `open`, `threading`, `random` or kazoo.

Real doors: `dataplane.clock`, `dataplane.network.loop`, `dataplane.storage.files`, `dataplane.cluster.zookeeper`,
`dataplane.background`. One thread runs the loop; every callback below is called on it.

network files zookeeper background     a door each; what a turn of the loop is, `network` says
basics                                 bytes, callbacks and time, of which several speak
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from dataplane.doors.background import Background
from dataplane.doors.basics import Buffer, Callback, Clock, Timer
from dataplane.doors.files import File, Files, NotInMemoryError
from dataplane.doors.network import (
    Connection,
    FileRange,
    FrameProtocol,
    Listener,
    Load,
    Loop,
    Preface,
    Said,
    TlsServer,
)
from dataplane.doors.zookeeper import (
    BadVersionError,
    Check,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    SetData,
    Stat,
    ZooKeeper,
    ZooKeeperError,
)

__all__ = [
    "Background",
    "BadVersionError",
    "Buffer",
    "Callback",
    "Check",
    "Clock",
    "Connection",
    "Create",
    "Delete",
    "Doors",
    "File",
    "FileRange",
    "Files",
    "FrameProtocol",
    "Listener",
    "Load",
    "Loop",
    "NoNodeError",
    "NodeExistsError",
    "NotEmptyError",
    "NotInMemoryError",
    "Operation",
    "Preface",
    "Said",
    "SetData",
    "Stat",
    "Timer",
    "TlsServer",
    "ZooKeeper",
    "ZooKeeperError",
]


@dataclass(frozen=True, slots=True)
class Doors:
    """All of them, as a broker gets them."""

    loop: Loop
    files: Files
    zookeeper: ZooKeeper
    background: Background
    random: Random

    @property
    def clock(self) -> Clock:
        return self.loop.clock
