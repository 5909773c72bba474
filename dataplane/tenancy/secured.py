"""What the routes of an instance that want TLS are served with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dataplane.doors import TlsServer


@dataclass(frozen=True, slots=True)
class Secured:
    """The TLS routes of an instance: each has a server, or a sentence why there is none."""

    made_of: object = None  # equal where nothing need be made anew
    servers: Mapping[str, TlsServer] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)


NOTHING = Secured()
