"""One run of a campaign: clients of several kinds (`workloads`), while faults come; what must hold is looked at all along.

At the end everything is healed. Then all that was acknowledged is read, once and in order, and all replicas are equal.
Batches of one producer are in order, and none is there twice, whatever was retried; what was not acknowledged may be
there or not. Before the first fault and after the last one clients are answered without delay (`pace`), and at the very
end nobody waits for anything any more.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from dataplane.tasks import Task, gather
from tests.simulation.ambushes import Ambushes
from tests.simulation.at_rest import check_at_rest
from tests.simulation.cluster import SETTINGS, SimulatedCluster
from tests.simulation.disturbances import Disturbances, PlannedError
from tests.simulation.faults import KINDS, OF_TRANSACTIONS
from tests.simulation.invariants import MIN_INSYNC_REPLICAS, ViolationError
from tests.simulation.operators import Operators
from tests.simulation.pace import Pace
from tests.simulation.workloads import OTHERS, Orders, Shared, Transfers, Workload
from tests.simulation.workloads.remade import Remade

ROUNDS = 6
HEALED_WITHIN_S = 90.0
SETTLES_S = 1.0
CALM_S = 0.6
OTHERS_AT_ONCE = (0, 1, 1, 2, 2)
CAMPAIGN_SETTINGS = replace(
    SETTINGS,
    min_insync_replicas=MIN_INSYNC_REPLICAS,
    replica_fetch_max_bytes=300,
    replica_fetch_wait_max_ms=500,
    usage_topic_num_partitions=1,
    log_segment_bytes=2_500,
    log_index_interval_bytes=400,
    log_retention_check_interval_ms=1_500,
    log_cleaner_backoff_ms=1_000,
    log_cleaner_min_cleanable_ratio=0.1,
    log_roll_ms=2_500,
    high_watermark_checkpoint_interval_ms=2_000,
)
"""Who was away catches up in many steps, and something may happen between them. Segments are full after some tens of
batches, and what is done by the clock is done every second. Else as little as possible happens."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run shows. `violation`: None where everything held."""

    seed: int
    violation: str | None
    acknowledged: int
    faults: dict[str, int]
    virtual_s: float
    cpu_s: float
    trace: tuple[int, tuple[tuple[float, str], ...]]


def prepare() -> None:
    """A process that runs many seeds: whose session ends says so at length, and here it happens all the time."""
    logging.disable()
    gc.freeze()  # what is imported is no garbage after any of them


def run(seed: int, *, rounds: int = ROUNDS, transfers: bool | None = None) -> Outcome:
    """A whole run from a seed. `transfers`: whether there are transactions; None: as the seed says.

    Where they are asked for there are faults of their own as well (`OF_TRANSACTIONS`): with these, other seeds would not
    be the runs that once found something.
    """
    began = time.process_time()
    kinds = (*KINDS, *OF_TRANSACTIONS) if transfers else KINDS
    campaign = _Campaign(seed, has_transfers(seed) if transfers is None else transfers, kinds)
    violation = None
    try:
        with _garbage_kept():
            campaign.whole(rounds)
    except Exception as error:  # noqa: BLE001 - whatever a broker raises ends its run, and is found
        violation = f"{type(error).__name__}: {error}"
    cluster = campaign.cluster
    return Outcome(
        seed,
        violation,
        campaign.acknowledged,
        campaign.faults.counts,
        cluster.network.clock.monotonic(),
        time.process_time() - began,
        cluster.trace,
    )


def has_transfers(seed: int) -> bool:
    """Every fifth seed has transactions. Not drawn with the other workloads: seeds that once found something still do."""
    return seed % 5 == 3


class _AllFaults(Ambushes, Operators, Disturbances):
    """Plain ones, those that lie in wait, what operators do, and what brokers and disks do to themselves."""


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Looking for cycles again and again takes a fifth of a run's time: once is enough, at its end."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
            gc.collect()


class _Campaign:
    def __init__(self, seed: int, transfers: bool, kinds: Sequence[str]) -> None:
        self.cluster = cluster = SimulatedCluster(seed, settings=CAMPAIGN_SETTINGS)
        cluster.network.survives = lambda error: isinstance(error, PlannedError)
        random = Random(cluster.random.getrandbits(64))
        self.pace = Pace(cluster)
        self.shared = Shared(cluster, self.pace, random)
        chosen = random.sample(OTHERS, random.choice(OTHERS_AT_ONCE))
        if transfers:
            chosen.append(Transfers)
        self.workloads: list[Workload] = [Orders(self.shared), *(make(self.shared) for make in chosen)]
        self.faults = _AllFaults(cluster, Orders.TOPIC, Orders.PARTITIONS, kinds)

    @property
    def acknowledged(self) -> int:
        return sum(len(workload.acknowledged) for workload in self.workloads)

    def whole(self, rounds: int) -> None:
        cluster = self.cluster
        cluster.until(cluster.up)
        for workload in self.workloads:
            workload.prepare()
        self._until(cluster.all_in_sync, HEALED_WITHIN_S, "replicas of a new topic are not in sync")
        clients = Task(gather([Task(client) for workload in self.workloads for client in workload.clients()]))
        self._calm(clients)
        faults = Task(self.faults.campaign(rounds))
        self._until(lambda: faults.done or clients.done, 40.0 * rounds, "the faults did not end")
        if clients.done:
            clients.result()
        faults.result()
        self._until(self._is_well, HEALED_WITHIN_S, "all is healed, and replicas are not in sync")
        self._calm(clients)
        self.shared.is_over = True
        self._until(lambda: clients.done, HEALED_WITHIN_S, "all is healed, and a client does not get on")
        clients.result()
        self._until(self._is_well, HEALED_WITHIN_S, "all is healed, and replicas are not in sync")
        self._until(self._is_committed, HEALED_WITHIN_S, "all is healed, and something is not committed")
        check_at_rest(cluster)
        for workload in self.workloads:
            workload.check()

    def _calm(self, clients: Task[Any]) -> None:
        """For a while nothing goes wrong, and nobody waits."""
        cluster, network = self.cluster, self.cluster.network
        self.shared.is_to_be_calm = True
        cluster.network.run_for(max(SETTLES_S, network.late_until + SETTLES_S - network.clock.seconds))
        self._until(self._is_well, HEALED_WITHIN_S, "nothing is wrong, and replicas are not in sync")
        self.pace.calm()
        cluster.network.run_for(CALM_S)
        self.pace.no_calm()
        self.shared.is_to_be_calm = False
        if clients.done:
            clients.result()

    def _until(self, condition: Callable[[], bool], within_s: float, otherwise: str) -> None:
        try:
            self.cluster.until(condition, within_s)
        except TimeoutError:
            raise ViolationError(f"{otherwise}, after {within_s:.0f} s") from None

    def _is_well(self) -> bool:
        cluster = self.cluster
        return cluster.up() and cluster.all_in_sync() and all(cluster.in_sync(name) for name in self._topics())

    def _topics(self) -> list[str]:
        """`remade` may just not be there."""
        return [workload.TOPIC for workload in self.workloads if workload.TOPIC != Remade.TOPIC]

    def _is_committed(self) -> bool:
        """A new leader's high watermark is behind, until its followers have asked."""
        logs = [p for b in self.cluster.brokers.values() for p in b.replicas.registry.partitions() if p.state.is_leader]
        return all(partition.state.high_watermark == partition.log.end_offset for partition in logs)
