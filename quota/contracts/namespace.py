"""The mapping between the names a tenant uses and the names the cluster stores.

A physical name is the instance's 8-character key, a dot, and the tenant's name::

    instance ins-k3v9x2qa, topic "orders"   <->   "k3v9x2qa.orders"

Ownership is decided by the *parsed* key, never by a prefix match: the first eight characters and the dot at index 8.
Groups and transactional ids are mapped in the same way; the cluster id a tenant sees is its instance id.
Names without a key (``__consumer_offsets``, ``__usage``) belong to the cluster and to no tenant. One tenant's name is the
service's, ``__sluice_audit``: the instance's clients read it, brokers alone write it, and it counts to none of its limits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

KEY_LENGTH = 8
INSTANCE_ID_PREFIX = "ins-"
MAX_TENANT_TOPIC_LENGTH = 230
"""A directory name holds key, dot, topic, dash and partition number within 255 bytes."""

AUDIT_TOPIC = "__sluice_audit"
"""Of each instance that is audited (`quota.contracts.audit`), in its own names."""

_KEPT = f".{AUDIT_TOPIC}"
_KEY = re.compile(r"[a-z0-9]{8}")
_TOPIC = re.compile(r"[A-Za-z0-9._-]+")


class Names(Protocol):
    """What the codecs ask for every field that holds a name. Inbound is tenant to physical, outbound the other way."""

    def topic_in(self, name: str) -> str: ...
    def topic_out(self, name: str) -> str: ...
    def group_in(self, name: str) -> str: ...
    def group_out(self, name: str) -> str: ...
    def transactional_id_in(self, name: str) -> str: ...
    def transactional_id_out(self, name: str) -> str: ...


class ForeignNameError(Exception):
    """A name of another tenant, or of the cluster, was about to be sent to a tenant. Always a bug: the connection closes."""


def instance_key(instance_id: str) -> str:
    """The 8-character key of an instance id such as ``ins-k3v9x2qa``. Raises ValueError for anything else."""
    key = instance_id.removeprefix(INSTANCE_ID_PREFIX)
    if not instance_id.startswith(INSTANCE_ID_PREFIX) or not _KEY.fullmatch(key):
        raise ValueError(f"not an instance id: {instance_id!r}")
    return key


def instance_id_of_key(key: str) -> str:
    """The instance id that owns an 8-character key."""
    return INSTANCE_ID_PREFIX + key


def split_physical(name: str) -> tuple[str, str] | None:
    """``(key, tenant name)`` of a physical name, or None where the name belongs to the cluster itself."""
    if len(name) > KEY_LENGTH and name[KEY_LENGTH] == "." and _KEY.fullmatch(name[:KEY_LENGTH]):
        return name[:KEY_LENGTH], name[KEY_LENGTH + 1 :]
    return None


def is_kept_by_the_service(physical: str) -> bool:
    """Whether a physical name is of an instance's topic that it may read and not change, and that counts to nothing."""
    return physical.endswith(_KEPT) and len(physical) == KEY_LENGTH + len(_KEPT)


def counted_key(physical: str) -> str | None:
    """The key of the instance to whose limits and bill a topic counts; None: to nobody's."""
    owner = split_physical(physical)
    return None if owner is None or is_kept_by_the_service(physical) else owner[0]


def topic_name_problem(name: str) -> str | None:
    """Why a tenant may not create a topic of this name, as a sentence; None where it may."""
    if not name:
        return "the topic name is empty"
    if name in (".", ".."):
        return "the topic name cannot be '.' or '..'"
    if len(name) > MAX_TENANT_TOPIC_LENGTH:
        return f"the topic name has {len(name)} characters; at most {MAX_TENANT_TOPIC_LENGTH} are allowed"
    if not _TOPIC.fullmatch(name):
        return "the topic name may hold only letters, digits, '.', '_' and '-'"
    if name.startswith("__"):
        return "topic names that begin with '__' are reserved"
    return None


@dataclass(frozen=True, slots=True)
class InstanceNames:
    """The names of one instance. Outbound mapping of a name that the instance does not own raises ForeignNameError."""

    key: str

    def _in(self, name: str) -> str:
        return f"{self.key}.{name}"

    def _out(self, name: str) -> str:
        if name[KEY_LENGTH : KEY_LENGTH + 1] == "." and name[:KEY_LENGTH] == self.key:
            return name[KEY_LENGTH + 1 :]
        raise ForeignNameError(f"instance key {self.key} does not own a name of {len(name)} characters")

    topic_in = group_in = transactional_id_in = _in
    topic_out = group_out = transactional_id_out = _out

    def owns(self, physical: str) -> bool:
        """Whether a physical name belongs to this instance."""
        return physical[KEY_LENGTH : KEY_LENGTH + 1] == "." and physical[:KEY_LENGTH] == self.key


@dataclass(frozen=True, slots=True)
class ClusterNames:
    """The names seen on the internal listener: the physical ones, unchanged."""

    @staticmethod
    def _same(name: str) -> str:
        return name

    topic_in = group_in = transactional_id_in = _same
    topic_out = group_out = transactional_id_out = _same

    @staticmethod
    def owns(physical: str) -> bool:
        """Every name is visible inside the cluster."""
        del physical
        return True
