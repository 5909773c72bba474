"""What an instance carried above its bought limit in a minute, where it has elastic bandwidth: what is billed by the GB.

The active master counts it, the control plane stores it and bills it. One line of JSON each, version 1, moments in
milliseconds since 1970, UTC::

    {"version": 1, "instance": "ins-k3v9x2qa", "direction": "produce", "epoch": 3, "minute_ms": 1763712060000, "bytes": 73400320}

The same (instance, direction, epoch, minute_ms) may come again with more bytes, while the minute lasts: the most counts, and a
master that is killed loses seconds. Masters of two epochs have counted different seconds of a minute that both name.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from quota.contracts.instance import ContractError
from quota.contracts.report import DIRECTIONS

VERSION = 1
MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class ElasticUse:
    """Bytes above what was bought, of one direction, that began within a minute of the wall's clock."""

    instance: str
    direction: str
    epoch: int
    minute_ms: int
    above_bytes: int

    def to_json(self) -> bytes:
        """One line, without its end."""
        document = {
            "version": VERSION,
            "instance": self.instance,
            "direction": self.direction,
            "epoch": self.epoch,
            "minute_ms": self.minute_ms,
            "bytes": self.above_bytes,
        }
        return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> ElasticUse:
        """From a parsed line. Raises ContractError."""
        try:
            if document["version"] > VERSION:
                raise ContractError(f"elastic use: version {document['version']} is newer than {VERSION}")
            numbers = {name: document[name] for name in ("epoch", "minute_ms", "bytes")}
            for name, value in numbers.items():
                if type(value) is not int or value < 0:
                    raise ContractError(f"elastic use: {name} must be a whole number of 0 or more, not {value!r}")
            instance, direction = document["instance"], document["direction"]
            if not isinstance(instance, str) or direction not in DIRECTIONS or numbers["minute_ms"] % MINUTE_MS:
                raise ContractError("elastic use: no instance, no direction, or no minute")
            return cls(instance, direction, numbers["epoch"], numbers["minute_ms"], numbers["bytes"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, ContractError):
                raise
            raise ContractError(f"elastic use: {type(error).__name__}: {error}") from error
