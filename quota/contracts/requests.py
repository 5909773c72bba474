"""What became of an instance's requests in ten seconds: how many, with which errors, how long they took; what flowed. Pure.

Brokers count in *windows*: ten seconds that begin at a multiple of ten since 1970, by the broker's own clock. A window that is
over is told once, as one text, and never changes; what is added up of it is exact, in whatever order it is done.

Times are Kafka's (`kafka.network:type=RequestMetrics`), each a histogram of whole numbers:

==========  ===========  ====================================================================================================
phase       Kafka        from when to when
==========  ===========  ====================================================================================================
`total`     TotalTimeMs  the whole request is here, until its answer is given to the connection
`local`     LocalTimeMs  of that, what is left without `remote`: the broker's loop worked, or was at others
`remote`    RemoteTimeMs it waited for others: in-sync replicas (acks=all), records to fetch, members of a group, ZooKeeper, the
                         disk (of a durable topic, or what is not in memory), or the answer before it on its connection
`throttle`  Throttle-    what its answer told the client to wait before the next request; not part of `total`, since a client
            TimeMs       that waits for its limit is not read from
==========  ===========  ====================================================================================================

Most requests wait for nothing: of these only one histogram is kept, `at_once`, which stands for all four. A Produce with acks=0
has no answer, hence no time: it is `unanswered`, and counts as a request.

`BOUNDS_US` are ten a decade from 10 us to 100 s. A percentile is in the bucket of the true one, so at most a third off, and as a
rule a tenth: `percentile_us` interpolates. Sums are exact.

The text is JSON, an array of seven for each API by Kafka's name; a histogram is ``[sum in us, first bucket, count, count, …]``::

    {"Produce": [unanswered, at_once, total, local, remote, throttle, {"NOT_LEADER_OR_FOLLOWER": 3}],
     "_carried": [0, [5000, 0], [], [1, 0], [], [], {}]}

`_carried` is what was carried meanwhile, as the flow reports have it but to the byte: bytes produced and consumed on the wire,
paid for and not refused, and of how many windows that is the sum, each the sum of a histogram of nothing. So a reader of an
earlier release takes it for an API without requests, and goes on. Brokers of an earlier release leave it out: then the third
number is smaller than that of the windows that were added up, and what was carried is not known. Names that begin with an
underscore are of no API: which of them a reader does not know, it leaves out.

`_topics` is what each topic moved in the window (`quota.contracts.topics_moved`). A broker says it with every text, also of no
topic; one of an earlier release leaves it out, and where nobody understands it, it counts as left out. It is of a broker's window
alone: `add` leaves it to who keeps topics.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import orjson

from quota.contracts.instance import ContractError
from quota.contracts.topics_moved import TopicsMoved

WINDOW_S = 10
"""As long as the control plane's finest samples: it keeps a row of each."""
PHASES = ("total", "local", "remote", "throttle")
_DECADE = (100, 125, 160, 200, 250, 315, 400, 500, 630, 800)
BOUNDS_US: tuple[int, ...] = (
    *(bound // 10 for bound in _DECADE),
    *(bound * 10**power for power in range(6) for bound in _DECADE),
    10**8,
)
"""The largest time that a bucket takes, in microseconds. One more bucket takes what is longer."""
BUCKETS = len(BOUNDS_US) + 1
MOST_TEXT = 128 * 2**10
"""Bytes of a window's text. All APIs of a tenant with something in all their buckets are less than half of it."""
_MOST = 2**53
_NO_API = "_"
_CARRIED = "_carried"
_TOPICS = "_topics"
_HISTOGRAMS = ("at_once", *PHASES)


@dataclass(slots=True)
class Histogram:
    """How many took how long. `counts` is by bucket."""

    counts: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    sum_us: int = 0

    @property
    def count(self) -> int:
        """Of how many."""
        return sum(self.counts)

    def observe(self, us: int) -> None:
        """One that took so many microseconds."""
        self.counts[bisect_left(BOUNDS_US, us)] += 1
        self.sum_us += us

    def add(self, other: Histogram) -> None:
        """What another has."""
        self.counts = [one + more for one, more in zip(self.counts, other.counts, strict=True)]
        self.sum_us += other.sum_us

    def percentile_us(self, share: float) -> float | None:
        """What so many of them (0 to 1) took at most, in microseconds; None: there is none.

        In a bucket they lie evenly; what took no longer than the first bound is 0.
        """
        count = self.count
        if not count:
            return None
        wanted, before = share * count, 0
        for bucket, some in enumerate(self.counts):
            if some and before + some >= wanted:
                if bucket == len(BOUNDS_US):
                    return float(BOUNDS_US[-1])  # nobody knows how far beyond
                if not bucket:
                    return 0.0  # most of these are times that were none
                lower = BOUNDS_US[bucket - 1]
                return lower + (BOUNDS_US[bucket] - lower) * max(0.0, wanted - before) / some
            before += some
        return float(BOUNDS_US[-1])

    def add_row(self, row: Sequence[int]) -> None:
        """What a row of `to_row` has."""
        counts, bucket = self.counts, row[1]
        self.sum_us += row[0]
        for some in row[2:]:
            counts[bucket] += some
            bucket += 1

    def to_row(self) -> list[int]:
        """As the text has it; empty where there is none."""
        found = [bucket for bucket, some in enumerate(self.counts) if some]
        return [self.sum_us, found[0], *self.counts[found[0] : found[-1] + 1]] if found else []

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Self:
        """Raises ContractError, TypeError."""
        if not row:
            return cls()
        for number in row:
            _check(number)
        total, first, *counts = row
        if first + len(counts) > BUCKETS:
            raise ContractError("requests: a histogram has too many buckets")
        return cls([0] * first + counts + [0] * (BUCKETS - first - len(counts)), total)


@dataclass(slots=True)
class ApiCounts:
    """Requests of one API."""

    unanswered: int = 0
    at_once: Histogram = field(default_factory=Histogram)
    total: Histogram = field(
        default_factory=Histogram
    )  # of those that waited, or whose client is told to; so is `local`
    local: Histogram = field(default_factory=Histogram)
    remote: Histogram = field(default_factory=Histogram)  # of those that waited
    throttle: Histogram = field(default_factory=Histogram)  # of those whose client is told to wait
    errors: dict[str, int] = field(
        default_factory=dict
    )  # by Kafka's name; of a request one for each partition that has one

    @property
    def requests(self) -> int:
        """How many there were."""
        return self.unanswered + self.at_once.count + self.total.count

    def times(self, phase: str) -> Histogram:
        """One phase of all that were answered. `remote` and `throttle` are 0 of those that have none."""
        found = Histogram()
        found.add(getattr(self, phase))
        if phase in ("total", "local"):
            found.add(self.at_once)
        else:
            found.counts[0] += max(0, self.at_once.count + self.total.count - found.count)
        return found

    def add(self, other: ApiCounts) -> None:
        """What another has."""
        self.unanswered += other.unanswered
        for name in _HISTOGRAMS:
            more: Histogram = getattr(other, name)
            if more.sum_us or any(more.counts):  # most have one only
                getattr(self, name).add(more)
        for code, count in other.errors.items():
            self.errors[code] = self.errors.get(code, 0) + count

    def to_row(self) -> list[Any]:
        """As the text has it."""
        return [
            self.unanswered,
            *(getattr(self, name).to_row() for name in _HISTOGRAMS),
            dict(sorted(self.errors.items())),
        ]

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Self:
        """Raises ContractError, ValueError, TypeError, AttributeError."""
        unanswered, *histograms, errors = row
        _check(unanswered)
        for code, count in errors.items():
            _check_name(code)
            _check(count)
        at_once, total, local, remote, throttle = map(Histogram.from_row, _as_many(histograms))
        return cls(unanswered, at_once, total, local, remote, throttle, dict(errors))


@dataclass(slots=True)
class RequestCounts:
    """Of one instance over some time: by API, as Kafka's metrics call it (``Produce``, ``ListOffsets``)."""

    apis: dict[str, ApiCounts] = field(default_factory=dict)
    produced_bytes: int = 0
    consumed_bytes: int = 0
    carried_windows: int = 0  # of which these are the sums
    topics: TopicsMoved | None = None  # None: not told

    @property
    def requests(self) -> int:
        """Of all APIs."""
        return sum(api.requests for api in self.apis.values())

    @property
    def errors(self) -> Mapping[str, int]:
        """Of all APIs, by code."""
        found: dict[str, int] = {}
        for api in self.apis.values():
            for code, count in api.errors.items():
                found[code] = found.get(code, 0) + count
        return found

    def of(self, api: str) -> ApiCounts:
        """Of one API, which may have had none."""
        return self.apis.get(api) or ApiCounts()

    def add(self, other: RequestCounts) -> None:
        """What another has, but for topics. It stays as it is."""
        for name, api in other.apis.items():
            if name not in self.apis:
                self.apis[name] = ApiCounts()
            self.apis[name].add(api)
        self._carry(other.produced_bytes, other.consumed_bytes, other.carried_windows)

    def _carry(self, produced: int, consumed: int, windows: int) -> None:
        self.produced_bytes += produced
        self.consumed_bytes += consumed
        self.carried_windows += windows

    def add_text(self, text: str) -> None:
        """What a text of `to_text` has, unchecked: of rows of our own, of which a page adds up thousands."""
        for name, row in orjson.loads(text).items():
            if name[0] == _NO_API:
                if name == _CARRIED:
                    self._carry(*(each[0] if each else 0 for each in row[1:4]))
                continue
            api = self.apis.get(name)
            if api is None:
                api = self.apis[name] = ApiCounts()
            api.unanswered += row[0]
            for place, histogram in enumerate(_HISTOGRAMS, 1):
                if row[place]:
                    getattr(api, histogram).add_row(row[place])
            for code, count in row[-1].items():
                api.errors[code] = api.errors.get(code, 0) + count

    def add_carried(self, text: str) -> None:
        """Of such a text what was carried, and nothing else: many times quicker."""
        row = orjson.loads(text).get(_CARRIED)
        if row:
            self._carry(*(each[0] if each else 0 for each in row[1:4]))

    def to_text(self) -> str:
        """See the file's text."""
        rows: dict[str, Any] = {name: api.to_row() for name, api in sorted(self.apis.items())}
        if self.carried_windows:
            sums = (self.produced_bytes, self.consumed_bytes, self.carried_windows)
            rows[_CARRIED] = [0, *([each, 0] if each else [] for each in sums), [], [], {}]
        if self.topics is not None:
            rows[_TOPICS] = self.topics.to_json()
        return orjson.dumps(rows).decode()

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Raises ContractError."""
        if len(text) > MOST_TEXT:
            raise ContractError(f"requests: a window of more than {MOST_TEXT} bytes")
        try:
            found = cls()
            for name, row in orjson.loads(text).items():
                _check_name(name)
                if name == _CARRIED:
                    sums = ApiCounts.from_row(row)
                    found._carry(sums.at_once.sum_us, sums.total.sum_us, sums.local.sum_us)
                elif name == _TOPICS:
                    found.topics = _topics(row)
                elif name[0] != _NO_API:
                    found.apis[name] = ApiCounts.from_row(row)
        except ContractError:
            raise
        except (ValueError, TypeError, AttributeError) as error:  # orjson's own error is a ValueError
            raise ContractError(f"requests: {type(error).__name__}: {error}") from error
        return found

    @classmethod
    def joined(cls, texts: Iterable[str]) -> Self:
        """Several added up. Raises ContractError."""
        found = cls()
        for text in texts:
            found.add(cls.from_text(text))
        return found


Windows = Mapping[str, Mapping[int, str]]
"""Texts by instance id, and by the second since 1970 at which a window begins."""


class Told(NamedTuple):
    """What a report tells of requests. With it, all is told of windows that began before `until`; None: nobody counts."""

    windows: Windows
    until: int | None


def windows_of(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[int, str]]:
    """Of a report's document. Raises ContractError, ValueError, TypeError, AttributeError.

    What is in a text is looked at by who needs it: a master hears thousands in a second, and adds up a few.
    """
    found: dict[str, dict[int, str]] = {}
    for instance, windows in rows.items():
        ours = found[str(instance)] = {}
        for at, text in windows.items():
            if type(text) is not str or len(text) > MOST_TEXT or int(at) < 0:
                raise ContractError("flow report: requests must be texts by moments")
            ours[int(at)] = text
    return found


def documents_of(windows: Windows) -> dict[str, dict[str, str]]:
    """The other way round."""
    return {instance: {str(at): text for at, text in ours.items()} for instance, ours in windows.items()}


def _as_many(histograms: Sequence[Any]) -> Iterator[Sequence[Any]]:
    if len(histograms) != len(_HISTOGRAMS):
        raise ContractError(f"requests: an API has {len(_HISTOGRAMS)} histograms, not {len(histograms)}")
    yield from histograms


def _topics(row: Any) -> TopicsMoved | None:
    """None where nobody understands them: the requests beside them are as good as before."""
    try:
        return TopicsMoved.from_json(row)
    except ContractError:
        return None


def _check(number: object) -> None:
    if type(number) is not int or not 0 <= number <= _MOST:
        raise ContractError(f"requests: {number!r} must be a whole number of 0 or more")


def is_name(name: str) -> bool:
    """Whether it may stand in pages and in Prometheus' labels, as an API's or an error's."""
    return name.isascii() and name.replace("_", "").isalnum() and len(name) <= 64


def is_api(name: str) -> bool:
    """Likewise, of an API alone."""
    return is_name(name) and name[0] != _NO_API


def _check_name(name: str) -> None:
    if not is_name(name):
        raise ContractError("requests: a name has letters, digits and underscores")
