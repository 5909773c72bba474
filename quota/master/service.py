"""The master without its sockets: a ledger for as long as it is active, and the answers that follow. No I/O.

A report is taken at once and answered a moment later (`GATHER_S`), together with those that come meanwhile. When the
load of an instance changes, its brokers start to throttle together and report together: a grant made from the first of
these reports and the others' old ones would take the change for an imbalance, hand out too much for ten periods and
correct itself slowly. Once a period the ledger forgets brokers that are gone, and the flight recorder says what is to be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from quota.contracts.elastic import ElasticUse
from quota.contracts.grant import Grants
from quota.contracts.instance import InstanceSpec
from quota.contracts.report import FlowReport
from quota.contracts.throttled import ThrottledInterval
from quota.core.elastic import ElasticMeter
from quota.core.ledger import Ledger
from quota.core.recorder import Recorder

GATHER_S = 0.15
"""A little more than the 100 ms between two ticks of an agent."""


Keep = Callable[[Sequence[ThrottledInterval]], None]
KeepElastic = Callable[[Sequence[ElasticUse]], None]


def _let_go(intervals: Sequence[ThrottledInterval]) -> None:
    """Where no history is wanted."""


class Service:
    """Specs and brokers are kept while standing by too, so that a new mastership begins with them.

    `now` is monotonic seconds, `wall_ms` the time of day; `keep` gets the recorder's intervals, `keep_elastic` what is billed
    of elastic bandwidth. Without the latter nothing above what was bought is granted: it could not be billed.
    """

    def __init__(
        self,
        *,
        period_ms: int,
        lease_ms: int,
        now: Callable[[], float],
        wall_ms: Callable[[], int] = lambda: 0,
        keep: Keep = _let_go,
        keep_elastic: KeepElastic | None = None,
    ) -> None:
        self._period_ms = period_ms
        self._lease_ms = lease_ms
        self._now = now
        self._wall_ms = wall_ms
        self._keep = keep
        self._keep_elastic = keep_elastic
        self._elastic = ElasticMeter(period_ms=period_ms)
        self._recorder = Recorder(period_ms=period_ms)
        self._specs: Mapping[str, InstanceSpec] = {}
        self._brokers: Sequence[int] | None = None
        self.ledger: Ledger | None = None
        self.reports_total = 0

    def won(self, epoch: int) -> None:
        """A mastership begins, with an empty ledger."""
        self.ledger = Ledger(
            epoch=epoch,
            now=self._now(),
            period_ms=self._period_ms,
            lease_ms=self._lease_ms,
            is_metered=self._keep_elastic is not None,
        )
        self.ledger.set_specs(self._specs, self._now())
        self.ledger.set_registered(self._brokers)
        self._recorder = Recorder(period_ms=self._period_ms)
        self._elastic = ElasticMeter(period_ms=self._period_ms)

    def lost(self) -> None:
        """The mastership has ended: nothing more is granted."""
        if self.ledger:
            self._keep(self._recorder.close(self.ledger.epoch))
            if self._keep_elastic is not None:
                self._keep_elastic(self._elastic.close(self.ledger.epoch))
        self.ledger = None

    def set_specs(self, specs: Mapping[str, InstanceSpec]) -> None:
        """All instances, as read from ZooKeeper."""
        self._specs = specs
        if self.ledger:
            self.ledger.set_specs(specs, self._now())

    def set_brokers(self, brokers: Sequence[int]) -> None:
        """The registered brokers, as read from ZooKeeper."""
        self._brokers = brokers
        if self.ledger:
            self.ledger.set_registered(brokers)

    def report(self, report: FlowReport) -> bool:
        """Take a report. False: there is no answer to give (standing by, or the report is out of date)."""
        if self.ledger is None or not self.ledger.report(report, self._now()):
            return False
        self.reports_total += 1
        self._recorder.take(report)
        return True

    def grants(self, broker: int) -> Grants | None:
        """The answer to the broker's last report; None where this mastership has had none."""
        if self.ledger is None or not self.ledger.knows(broker):
            return None
        return self.ledger.grants(broker, self._now())

    def tick(self) -> None:
        if self.ledger:
            now = self._now()
            self.ledger.tick(now)
            now_ms = self._wall_ms()
            if self._keep_elastic is not None:  # before: what is billed is worth more than history
                self._keep_elastic(self._elastic.tick(self.ledger, now, now_ms))
            self._keep(self._recorder.tick(self.ledger, now, now_ms))
