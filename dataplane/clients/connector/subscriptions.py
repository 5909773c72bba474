"""What a member of a group reads, as its node says it, byte by byte as Kafka 0.8 writes it. Pure.

    /consumers/[group]/ids/[member] -> {"version":1,"subscription":{"orders":2},"pattern":"static","timestamp":"1416000000000"}

`pattern` is ``static`` (topics by name, with the number of streams of each), ``white_list`` or ``black_list`` (one regular
expression, with the number of streams). The documents' own form, ``{"topic1": #streams, …}``, is read as well.

A topic filter is a regular expression that has to fit the whole name; a list of names with commas is one too. Java's and
Python's expressions are the same for all that names of topics need.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dataplane.clients.errors import ConfigurationError

STATIC, WHITE_LIST, BLACK_LIST = "static", "white_list", "black_list"
INTERNAL = frozenset(("__consumer_offsets", "__transaction_state"))


@dataclass(frozen=True)
class TopicFilter:
    """Which topics are read. Raises ConfigurationError for what is no regular expression."""

    text: str
    pattern: ClassVar[str]

    def __post_init__(self) -> None:
        try:
            re.compile(self.regex)
        except re.error as error:
            raise ConfigurationError(f"{self.text!r} is no regular expression: {error}") from error

    @property
    def regex(self) -> str:
        """As the node has it: commas are alternatives, spaces and quotes around it count for nothing."""
        return self.text.strip().replace(",", "|").replace(" ", "").strip("\"'")

    def allows(self, topic: str) -> bool:
        raise NotImplementedError


class Whitelist(TopicFilter):
    """Topics whose whole name fits."""

    pattern = WHITE_LIST

    def allows(self, topic: str) -> bool:
        return re.fullmatch(self.regex, topic) is not None


class Blacklist(TopicFilter):
    """All others."""

    pattern = BLACK_LIST

    def allows(self, topic: str) -> bool:
        return re.fullmatch(self.regex, topic) is None


_FILTERS: Mapping[str, type[TopicFilter]] = {WHITE_LIST: Whitelist, BLACK_LIST: Blacklist}


@dataclass(frozen=True)
class Subscription:
    """Of one member: either `streams` by topic, or a filter with its number of streams."""

    streams: Mapping[str, int]
    topic_filter: TopicFilter | None = None
    filter_streams: int = 0

    def of(self, topics: Iterable[str], *, internal: bool = False) -> dict[str, int]:
        """How many streams read each topic, where these exist."""
        if self.topic_filter is None:
            return dict(self.streams)
        allowed = (one for one in topics if self.topic_filter.allows(one) and (internal or one not in INTERNAL))
        return dict.fromkeys(sorted(allowed), self.filter_streams)

    def to_json(self, timestamp_ms: int) -> bytes:
        """A registration, as Kafka 0.8 writes it."""
        if self.topic_filter is None:
            pattern, counts = STATIC, dict(self.streams)
        else:
            pattern, counts = self.topic_filter.pattern, {self.topic_filter.regex: self.filter_streams}
        document = {"version": 1, "subscription": counts, "pattern": pattern, "timestamp": str(timestamp_ms)}
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def parse_registration(data: bytes) -> Subscription:
    """Of anybody's. Raises ValueError for what is none."""
    document: Any = json.loads(data)
    counts = document.get("subscription", document) if isinstance(document, dict) else None
    if not isinstance(counts, dict) or not all(isinstance(count, int) for count in counts.values()):
        raise ValueError("a subscription names topics with numbers of streams")
    pattern = document.get("pattern", STATIC) if "subscription" in document else STATIC
    if pattern == STATIC:
        return Subscription(counts)
    if pattern not in _FILTERS or len(counts) != 1:
        raise ValueError(f"a subscription of the pattern {pattern!r} with {len(counts)} expressions")
    ((regex, count),) = counts.items()
    return Subscription({}, _FILTERS[pattern](regex), count)
