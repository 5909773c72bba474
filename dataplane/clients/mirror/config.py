r"""`mirror.toml`.

    [target]
    name = "new"                                  # what loops are known by
    bootstrap = "127.0.0.1:9092"
    properties = { "security.protocol" = "SASL_SSL", "sasl.username" = "…", … }     # as of any client; left out: in the clear
    checkpoint_topic = "mirror-checkpoints"
    status_topic = "mirror-status"                # where it says how it is, each sync_s; "": nowhere
    replication_factor = -1                       # of topics that are made; -1: the target's default

    [[sources]]
    name = "old"
    bootstrap = "127.0.0.1:9192"
    topics = "orders,bills.*"                     # whole names, as a whitelist of the consumer
    exclude = "bills\\\\.draft"
    groups = ".*"                                  # whose committed offsets are translated; left out: none
    prefix = ""                                   # before each topic's name in the target; "old." tells sources apart
    mark = false                                  # a header on each message says where it came from: see below

    [mirror]
    delivery = "auto"                             # exactly_once where the target can, else at_least_once; or one of these
    metrics_port = 9700                           # 0: none
    metrics_host = "127.0.0.1"                    # where it listens
    sync_s = 10                                   # topics, configurations and groups
    checkpoint_s = 1                              # so often a transaction ends, each 15 s at least: as much later readers see it
    fetch_bytes = 1048576                         # of a partition
    compression = "lz4"

**Loops.** A topic of a source whose name begins with ``<target's name>.`` came from the target, by another mirror with a prefix,
and is not copied. Without prefixes both ways need ``mark``: what has a header of the target's name is not copied back.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from dataplane.clients.connector.subscriptions import INTERNAL, Whitelist
from dataplane.clients.errors import ConfigurationError
from dataplane.clients.messages import codec_of
from dataplane.clients.settings import Address, ConnectionSettings, addresses

AUTO, EXACTLY_ONCE, AT_LEAST_ONCE = "auto", "exactly_once", "at_least_once"


@dataclass(frozen=True, kw_only=True)
class _End:
    name: str
    bootstrap: tuple[Address, ...]
    settings: ConnectionSettings


@dataclass(frozen=True, kw_only=True)
class Target(_End):
    """Where all goes."""

    checkpoint_topic: str = "mirror-checkpoints"
    status_topic: str = "mirror-status"
    replication_factor: int = -1


@dataclass(frozen=True, kw_only=True)
class Source(_End):
    """One cluster that is copied."""

    topics: Whitelist
    exclude: Whitelist | None = None
    groups: Whitelist | None = None
    prefix: str = ""
    mark: bool = False

    def copies(self, topic: str, target: Target) -> bool:
        """Whether this topic is to be copied."""
        is_own = topic in (target.checkpoint_topic, target.status_topic)
        is_ours = topic in INTERNAL or is_own or topic.startswith(f"{target.name}.")
        is_excluded = self.exclude is not None and self.exclude.allows(topic)
        return not is_ours and not is_excluded and self.topics.allows(topic)

    def translates(self, group: str) -> bool:
        """Whether this group's offsets are translated."""
        return self.groups is not None and self.groups.allows(group)


@dataclass(frozen=True, kw_only=True)
class MirrorConfig:
    """All of the file."""

    target: Target
    sources: tuple[Source, ...]
    delivery: str = AUTO
    metrics_port: int = 0
    metrics_host: str = "127.0.0.1"
    sync_s: float = 10.0
    checkpoint_s: float = 1.0
    fetch_bytes: int = 2**20
    compression: str = "none"


def read_config(path: Path) -> MirrorConfig:
    """Raises ConfigurationError."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path}: {error}") from error
    return parse_config(document)


def parse_config(document: Mapping[str, Any]) -> MirrorConfig:
    """Raises ConfigurationError."""
    _known(document, {"target", "sources", "mirror"}, "the file")
    target = Target(**_end(document.get("target"), Target, "[target]"))
    tables = document.get("sources")
    if not isinstance(tables, list) or not tables:
        raise ConfigurationError("[[sources]]: there is at least one")
    sources = []
    for table in tables:
        members = _end(table, Source, "[[sources]]")
        for name in ("topics", "exclude", "groups"):
            if name in members:
                members[name] = Whitelist(members[name])
        if "topics" not in members:
            raise ConfigurationError("[[sources]]: topics says which topics are copied")
        sources.append(Source(**members))
    names = [target.name, *(source.name for source in sources)]
    if len(set(names)) < len(names):
        raise ConfigurationError("each cluster has a name of its own")
    mirror = document.get("mirror", {})
    _known(mirror, {one.name for one in fields(MirrorConfig)} - {"target", "sources"}, "[mirror]")
    deliveries = (AUTO, EXACTLY_ONCE, AT_LEAST_ONCE)
    if mirror.get("delivery", AUTO) not in deliveries:
        raise ConfigurationError(f"mirror.delivery is one of {', '.join(deliveries)}, not {mirror['delivery']!r}")
    try:
        codec_of(mirror.get("compression", "none"))
    except KeyError:
        raise ConfigurationError(f"mirror.compression: there is no {mirror['compression']!r}") from None
    return MirrorConfig(target=target, sources=tuple(sources), **mirror)


def _end(table: Any, kind: type[_End], what: str) -> dict[str, Any]:
    if not isinstance(table, dict) or not {"name", "bootstrap"} <= set(table):
        raise ConfigurationError(f"{what} has a name and a bootstrap")
    members = dict(table)
    _known(members, ({one.name for one in fields(kind)} - {"settings"}) | {"properties"}, what)
    properties = {"client.id": "sluice-mirror", **members.pop("properties", {})}
    members["settings"] = ConnectionSettings.from_properties(properties)
    members["bootstrap"] = tuple(addresses(members["bootstrap"], f"{what} bootstrap"))
    return members


def _known(table: Mapping[str, Any], names: set[str], what: str) -> None:
    unknown = sorted(set(table) - names)
    if unknown:
        raise ConfigurationError(f"{what} has no {', '.join(unknown)}; it has {', '.join(sorted(names))}")
