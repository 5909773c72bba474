"""That an instance was written: a node per write, ``/sluice/changes/change-<n>``, in the same transaction as the write.

::

    {"instance": "ins-k3v9x2qa"}

Who writes an instance's specification, whitelists or throttle rules (the control plane, and brokers for tenants) writes it.
Brokers and the master watch its directory and nothing else, and read what it names. A reader that finds a node gone, since the
directory is kept short, or not legible, reads everything.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from quota.contracts.instance import CHANGES_PATH, ContractError, to_bytes

NEW_CHANGE_PATH = f"{CHANGES_PATH}/change-"
"""Of a sequential node: ZooKeeper appends the number."""


@dataclass(frozen=True, slots=True)
class Change:
    """Which instance to read again."""

    instance: str

    def to_json(self) -> bytes:
        """The document."""
        return to_bytes({"instance": self.instance})

    @classmethod
    def from_json(cls, data: bytes) -> Change:
        """Raises ContractError. Members that it does not know are ignored."""
        try:
            instance = json.loads(data)["instance"]
        except (ValueError, KeyError, TypeError) as error:
            raise ContractError(f"change: {type(error).__name__}: {error}") from error
        if not isinstance(instance, str) or not instance:
            raise ContractError(f"change: instance must be an id, not {instance!r}")
        return cls(instance)
