"""What an instance asked of each of its brokers over time: how much, how many errors, how long it took, what flowed. Pure.

Less than what is kept of the instance as a whole, which has every API and phase: a row is to have it of all brokers. So of times
there are two histograms, those that are shown as the latencies of producing and fetching.

As JSON by the broker's id, ``{"1": [requests, errors, windows, produced, consumed, carried windows, produce, fetch]}``: bytes,
and histograms as `quota.contracts.requests` has them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import orjson

from controlplane.history.requests.figures import LATENCIES
from quota.contracts.requests import Histogram, RequestCounts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


@dataclass(slots=True)
class Asked:
    """Of one broker. `windows` are those in which it was asked anything, `carried_windows` those whose bytes are known."""

    requests: int = 0
    errors: int = 0
    windows: int = 0
    produced_bytes: int = 0
    consumed_bytes: int = 0
    carried_windows: int = 0
    produce: Histogram = field(default_factory=Histogram)
    fetch: Histogram = field(default_factory=Histogram)

    @classmethod
    def of(cls, counts: RequestCounts) -> Self:
        """One window."""
        produce, fetch = (counts.of(api).times(phase) for api, phase in LATENCIES.values())
        return cls(
            counts.requests,
            sum(counts.errors.values()),
            1,
            counts.produced_bytes,
            counts.consumed_bytes,
            counts.carried_windows,
            produce,
            fetch,
        )

    def add_row(self, row: list[Any]) -> None:
        """What a row of `to_row` has."""
        requests, errors, windows, produced, consumed, carried, *histograms = row
        self.requests += requests
        self.errors += errors
        self.windows += windows
        self.produced_bytes += produced
        self.consumed_bytes += consumed
        self.carried_windows += carried
        for mine, more in zip((self.produce, self.fetch), histograms, strict=True):
            if more:
                mine.add_row(more)

    def to_row(self) -> list[Any]:
        """As the text has it."""
        return [
            self.requests,
            self.errors,
            self.windows,
            self.produced_bytes,
            self.consumed_bytes,
            self.carried_windows,
            self.produce.to_row(),
            self.fetch.to_row(),
        ]


def text_of(brokers: Mapping[int, RequestCounts]) -> str:
    """Of one window."""
    return _text({str(broker): Asked.of(counts) for broker, counts in brokers.items()})


def added(texts: Iterable[str | None]) -> str | None:
    """Several together; None: of one of them it is not known."""
    parts = list(texts)
    return None if None in parts else added_known(parts)


def added_known(texts: Iterable[str | None]) -> str:
    """The same of those of which it is known: a counter goes on after what it does not have."""
    found: dict[str, Asked] = {}
    for text in texts:
        for broker, row in orjson.loads(text or "{}").items():
            found.setdefault(broker, Asked()).add_row(row)
    return _text(found)


def without(text: str, gone: Collection[int]) -> str:
    """The same without some brokers."""
    found: dict[str, Any] = orjson.loads(text)
    left = {broker: row for broker, row in found.items() if int(broker) not in gone}
    return text if len(left) == len(found) else orjson.dumps(left).decode()


def read(text: str) -> dict[int, Asked]:
    """By the broker's id, in their order."""
    found: dict[int, Asked] = {}
    for broker, row in orjson.loads(text).items():
        found[int(broker)] = Asked()
        found[int(broker)].add_row(row)
    return dict(sorted(found.items()))


def _text(found: Mapping[str, Asked]) -> str:
    return orjson.dumps({broker: found[broker].to_row() for broker in sorted(found, key=int)}).decode()
