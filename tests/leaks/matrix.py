"""The matrix: both sides are given what they have, A asks, and what differs is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dataplane.handlers.table import Handler, served
from dataplane.protocol.api import APIS, Api, ApiKey
from dataplane.protocol.codec import encode
from dataplane.protocol.headers import decode_response
from dataplane.protocol.messages.fetch import FetchRequest
from tests.leaks import logins, tidying
from tests.leaks.asking import Maker, Path, Variant, fields_of, variants
from tests.leaks.client import Client, Told
from tests.leaks.comparing import addresses_in, comparable, found_in, in_words, words_of
from tests.leaks.kinds import Kind
from tests.leaks.planting import Facts, Numbers, cluster_id_of, coordinator_of, group_names, plant
from tests.leaks.values import Pair, Values
from tests.leaks.world import Sides

CHANGES = (
    *(ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.DELETE_RECORDS, ApiKey.DELETE_TOPICS),
    *(ApiKey.CREATE_PARTITIONS, ApiKey.DELETE_GROUPS, ApiKey.OFFSET_DELETE, ApiKey.LEAVE_GROUP, ApiKey.PRODUCE),
    *(ApiKey.INIT_PRODUCER_ID, ApiKey.DELETE_ACLS, ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS),
    *(ApiKey.OFFSET_COMMIT, ApiKey.CREATE_ACLS, ApiKey.JOIN_GROUP, ApiKey.CREATE_TOPICS),
)
"""What changes something, asked after everything that does not, in this order: what makes things last."""
_ASKED_TWICE = (ApiKey.PRODUCE, ApiKey.FETCH)
"""The second may be answered by a short cut."""
_NUMBERS = {
    "A": Numbers(11, "86400000", 1e9, "10.66.55.33", 4096),
    "B": Numbers(0x0B5EC7E7A17E5EC7, "604123457", 987654321.0, "10.66.55.44", 5120),
}
_ROUNDS = 20
_SESSIONS = 7  # the version of Fetch that knows them

PAIRS, UNCHANGED, UNTOUCHED, REFUSED = "pairs", "unchanged", "untouched", "refused"
PHASES = (PAIRS, UNCHANGED, UNTOUCHED, REFUSED)


@dataclass(frozen=True)
class Leak:
    """One difference."""

    api: str
    version: int
    broker: int
    where: str  # variant, field and value, or the phase
    what: str
    foreign: str
    absent: str


@dataclass
class Report:
    """What was asked, and found."""

    cells: Counter[tuple[str, str]] = field(default_factory=Counter)  # by API and phase
    leaks: list[Leak] = field(default_factory=list)
    nothing_foreign: dict[str, str] = field(default_factory=dict)  # kinds of which B has nothing here, and an example
    scanned: int = 0  # answers

    def of(self, phase: str) -> int:
        """Cells of a phase."""
        return sum(count for (_, each), count in self.cells.items() if each == phase)


@dataclass(frozen=True)
class _Question:
    """What is asked of every broker."""

    row: Handler
    version: int
    variant: Variant

    @property
    def api(self) -> Api:
        return self.row.api

    @property
    def name(self) -> str:
        return self.api.key.name

    @property
    def changes(self) -> bool:
        return self.api.key in CHANGES

    @property
    def is_quiet(self) -> bool:
        return self.variant.is_quiet and not self.changes


@dataclass(frozen=True)
class _Look:
    """A question about one's own things, and its answer."""

    question: _Question
    whose: str
    broker: int
    told: Told


class Matrix:
    """One run. `apis`: these only, by name; `edges`: of each API the oldest and the newest version."""

    def __init__(
        self,
        sides: Sides,
        *,
        token: str = "zq7leak",
        apis: frozenset[str] = frozenset(),
        edges: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._sides, self._say = sides, say
        self._a, self._b = sides.a, sides.b
        self._token, self._apis, self._edges = token, apis, edges
        self._left: set[str] = set()  # words that A may have now, since it has said them
        self._words: dict[str, bytes] = {}
        self.report = Report()
        self.own: Facts
        self.others: Facts

    def run(self) -> Report:
        """All phases. The sides are as they were when this returns."""
        for client in (self._a, self._b):
            client.wait(lambda: _is_ready(client), "brokers, controller and coordinators")  # noqa: B023 - called at once
        self._say("brokers, controller and coordinators are there")
        before = [tidying.belongings(client) for client in (self._a, self._b)]
        try:
            self.prepare()
            self.compare()
        finally:
            for client, had in zip((self._a, self._b), before, strict=True):
                tidying.restore(client, had)
                client.close()
        return self.report

    # --- phases -------------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """A has its things, then B comes with its own: A is told the same as before."""
        shared, own, others = self._groups()
        common = tuple(broker for broker in self._a.brokers if broker in self._b.brokers)
        a_leads, b_leads = common or tuple(self._a.brokers), common or tuple(self._b.brokers)
        self.own = plant(self._a, "own", a_leads, _NUMBERS["A"], (own, shared))
        self._settle(self._a, self.own)
        self._say("A has its things")
        before = list(self._about(self._a, self.own))
        self.others = plant(self._b, self._token, b_leads, _NUMBERS["B"], (others, shared), apart=True)
        self._settle(self._b, self.others)
        self._words = words_of(self.others, self._sides.inside, self.own)
        self._say("B has its things")
        self._unequal(UNCHANGED, before, list(self._about(self._a, self.own)), words=self._words)

    def compare(self) -> None:
        """The pairs, with B looked at before and behind."""
        self.values = Values(self._a, self.own, self.others)
        self._kept = tidying.topics(self._a)
        before = list(self._about(self._b, self.others))
        if self._sides.login is not None and self._is_asked(ApiKey.SASL_AUTHENTICATE):
            self._logins()  # before A has made users who are called so
        self._refusals()
        rows = sorted(self._rows(), key=lambda row: CHANGES.index(row.api.key) if row.api.key in CHANGES else -1)
        for row in rows:
            self._pairs(row)
            self._say(f"{row.api.key.name:32}{self.report.cells[row.api.key.name, PAIRS]:6} pairs")
        self._unequal(UNTOUCHED, before, list(self._about(self._b, self.others)))
        self._look_at_session()

    def _pairs(self, row: Handler) -> None:
        for question in self._questions(row):
            for path, kind in fields_of(row.api.request, question.version, question.variant):
                pairs = self.values.of(kind)
                if not pairs:
                    self.report.nothing_foreign.setdefault(kind.value, f"{row.api.key.name} {'.'.join(path)}")
                for pair in pairs:
                    if question.version >= pair.low:
                        self._everywhere(question, path, kind, pair)

    def _everywhere(self, question: _Question, path: Path, kind: Kind, pair: Pair) -> None:
        """At each broker, all else being A's own, and all else being what B would say."""
        asked: list[Any] = []
        for facts, beside in ((self.own, ""), (self.others, ", beside what B would say")):
            make = Maker(facts, question.version, question.variant)
            requests = [make.request(question.api.request, path, value) for value in (pair.foreign, pair.absent)]
            if requests not in asked:
                asked.append(requests)
                where = f"{question.variant.name} {'.'.join(path)}: {pair.name}{beside}".strip()
                for broker in self._a.brokers:
                    self._cell(question, requests, where, kind, pair, broker)

    def _cell(self, question: _Question, requests: list[Any], where: str, kind: Kind, pair: Pair, broker: int) -> None:
        version, api = question.version, question.api
        said = encode(requests[0], version)
        named = {name for name, word in self._words.items() if word in said}
        if question.changes:
            self._left |= named
        words = {name: word for name, word in self._words.items() if name not in named | self._left}
        times = 2 if api.key in _ASKED_TWICE else 1
        for _ in range(times):
            told = [self._asked(broker, request, version) for request in requests]
            self.report.cells[question.name, PAIRS] += 1
            self._judge(question, broker, where, told[0], told[1], pair, kind)
            for each in told:
                self._scan(question, broker, where, each, words)

    def _asked(self, broker: int, request: Any, version: int) -> Told:
        told = self._a.ask(broker, request, version)
        tidying.after(tidying.Asked(self._a, broker, request, version, told, self._kept))
        return told

    def _judge(
        self, question: _Question, broker: int, where: str, foreign: Told, absent: Told, pair: Pair, kind: Kind
    ) -> None:
        api, version = question.api, question.version
        if foreign.connection != absent.connection:
            what = "the connection"
        elif comparable(api, version, foreign, None, kind) != comparable(api, version, absent, pair, kind):
            what = "the answer"
        else:
            return
        self._found(question, broker, where, f"{what} differs", foreign, absent)

    def _scan(self, question: _Question, broker: int, where: str, told: Told, words: dict[str, bytes]) -> None:
        self.report.scanned += 1
        for name in found_in(told, words):
            self._found(question, broker, where, f"the answer holds {name}", told, told)

    def _found(self, question: _Question, broker: int, where: str, what: str, foreign: Told, absent: Told) -> None:
        texts = [in_words(question.api, question.version, told) for told in (foreign, absent)]
        self.report.leaks.append(Leak(question.name, question.version, broker, where, what, *texts))

    def _logins(self) -> None:
        assert self._sides.login is not None
        name = ApiKey.SASL_AUTHENTICATE.name
        for cell in logins.cells(self._a.network, self._sides.login, self.others):
            self.report.cells[name, PAIRS] += 1
            if cell.foreign != cell.absent:
                told = str(cell.foreign), str(cell.absent)
                self.report.leaks.append(Leak(name, cell.version, -1, cell.where, "the answer differs", *told))
        self._say(f"{'logins':32}{self.report.cells[name, PAIRS]:6} pairs")

    def _refusals(self) -> None:
        """What is not served to tenants, API or version, is no way in: the connection ends."""
        known = {row.api.key: row for row in served(tenant=True)}
        for api in APIS.values():
            row = known.get(api.key)
            for version in range(api.versions.low, api.versions.high + 1) if self._is_asked(api.key) else ():
                if row is None or not (
                    row.serves(version) or api.key is ApiKey.API_VERSIONS
                ):  # which says its versions
                    for broker in self._a.brokers:
                        self._refusal(api, version, broker)

    def _refusal(self, api: Api, version: int, broker: int) -> None:
        told = self._a.ask(broker, api.request(), version)
        self.report.cells[api.key.name, REFUSED] += 1
        if told != Told(None, "closed"):
            text = in_words(api, version, told)
            self.report.leaks.append(Leak(api.key.name, version, broker, REFUSED, "it is answered", text, text))

    def _look_at_session(self) -> None:
        """B's fetch session has to be there still: nothing that is only asked would show it."""
        goes_on = FetchRequest(session_id=self.others.session_id, session_epoch=1)
        answer = self._b.call(self.others.session_at, goes_on, _SESSIONS)
        self.report.cells[ApiKey.FETCH.name, UNTOUCHED] += 1
        if answer.error_code:
            leak = Leak(
                ApiKey.FETCH.name, _SESSIONS, self.others.session_at, UNTOUCHED, "B's session has ended", *("",) * 2
            )
            self.report.leaks.append(leak)

    # --- about one's own things ---------------------------------------------------------------------------------------

    def _about(self, client: Client, facts: Facts) -> Iterator[_Look]:
        """Whatever leaves no trace, asked about what a side has by words of its own and by words of both sides."""
        for row in self._rows():
            for question in self._questions(row):
                for whose, view in (("its own", facts), ("of both names", facts.shared())):
                    if question.is_quiet:
                        request = Maker(view, question.version, question.variant).request(row.api.request)
                        for broker in client.brokers:
                            yield _Look(question, whose, broker, client.ask(broker, request, question.version))

    def _unequal(
        self, phase: str, before: list[_Look], after: list[_Look], words: dict[str, bytes] | None = None
    ) -> None:
        addresses = set(self._a.brokers.values())
        for was, now in zip(before, after, strict=True):
            question, broker, told = now.question, now.broker, now.told
            where = f"{phase}, {question.variant.name}, {now.whose}"
            self.report.cells[question.name, phase] += 1
            if was.told.connection != told.connection or _chosen(question, was.told) != _chosen(question, told):
                self._found(question, broker, where, "what is told has changed", told, was.told)
            if words is not None:
                self._scan(question, broker, where, told, words)
                if told.answer is not None:
                    decoded = decode_response(question.api, question.version, told.answer)[1]
                    for address in sorted(addresses_in(decoded) - addresses):
                        self._found(question, broker, where, f"the answer names {address}", told, told)

    def _settle(self, client: Client, facts: Facts) -> None:
        """Until what was written has reached all copies: two rounds of looking at it are equal."""
        keys = (ApiKey.FETCH, ApiKey.METADATA, ApiKey.OFFSET_FETCH, ApiKey.DESCRIBE_LOG_DIRS, ApiKey.LIST_OFFSETS)
        newest = [row for row in served(tenant=True) if row.api.key in keys]
        last: list[Told] = []
        for _ in range(_ROUNDS):
            now = [
                client.ask(broker, Maker(facts, row.high, variant).request(row.api.request), row.high)
                for row in newest
                for variant in variants(row.api.request)
                if variant.is_quiet
                for broker in client.brokers
            ]
            if now == last:
                return
            last = now
            client.network.pause(1.0)
        raise TimeoutError("the side does not come to rest")

    # --- what there is to ask -----------------------------------------------------------------------------------------

    def _rows(self) -> list[Handler]:
        return [row for row in served(tenant=True) if self._is_asked(row.api.key)]

    def _is_asked(self, key: ApiKey) -> bool:
        return not self._apis or key.name in self._apis

    def _questions(self, row: Handler) -> Iterator[_Question]:
        versions = (row.low, row.high) if self._edges else range(row.low, row.high + 1)
        for version in dict.fromkeys(versions):
            for variant in variants(row.api.request):
                if version >= variant.low:
                    yield _Question(row, version, variant)

    def _groups(self) -> tuple[str, str, str]:
        """Names of both sides, of A, and of B: A can ask who keeps them, also by B's physical name, and B's are kept there."""
        a, b = self._a, self._b
        both = [broker for broker in a.brokers if broker in b.brokers] or list(b.brokers)
        key = cluster_id_of(b).removeprefix("ins-")

        def is_asked(name: str) -> bool:
            return coordinator_of(a, name) >= 0

        def is_kept(name: str) -> bool:
            return coordinator_of(b, name) in both

        def is_asked_for_physically(name: str) -> bool:
            return coordinator_of(a, f"{key}.{name}") >= 0

        return (
            _best(group_names("shared"), is_asked, is_kept),
            _best(group_names("own"), is_asked),
            _best(group_names(self._token), is_asked, is_kept, is_asked_for_physically),
        )


def _best(names: list[str], *conditions: Callable[[str], bool]) -> str:
    """The first name for which all hold; where there is none, as many of the first ones as can."""
    for number in range(len(conditions), 0, -1):
        for name in names:
            if all(condition(name) for condition in conditions[:number]):
                return name
    raise LookupError("there is no group that is kept where it can be asked for")


def _chosen(question: _Question, told: Told) -> bytes | None:
    return comparable(question.api, question.version, told, None, Kind.NOTHING)


def _is_ready(client: Client) -> bool:
    client.look()
    return client.controller in client.brokers and any(
        coordinator_of(client, name) >= 0 for name in group_names("any")[:20]
    )
