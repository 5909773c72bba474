"""Whether this process lives, and whether requests may be sent to it. Both are asked without a key, and tell no more than this.

=================  ====================================================================================================
/health/live       it answers. Nothing else is asked: a process that is restarted because a database is away helps nobody
/health/ready      200 where the database answers, 503 where it does not. ``status`` is ``degraded`` where the cache or
                   the ZooKeeper of some cluster is away, or no worker was heard for some seconds: pages and REST still
                   serve, and taking every process out would serve nobody. Who wants to hear of that by the status asks
                   with ``?strict=1``
/health            whether the database answers, as releases before have said it (`api/operations.py`)
=================  ====================================================================================================

Each is asked on a thread of its own for `WITHIN_S` at most, all at the same time, and by one thread at once: what hangs is not
asked again until it ends. An answer is good for `KEPT_S`, so that who asks often opens no more connections. Prometheus has
the same of each at /metrics (`metrics_text`).
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.cache import caches
from django.db import connections
from django.http import JsonResponse
from django.views.decorators.http import require_safe

from controlplane.clusters import zookeeper
from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.models import ClusterState, PhysicalCluster
from controlplane.core import pulse

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest

LOG = logging.getLogger(__name__)
WITHIN_S = 2.0
KEPT_S = 1.0
NOT_STORED = {"Cache-Control": "no-store"}


class WorkersAway(Exception):  # noqa: N818  # what a probe has found, not an error to show
    """No worker was heard for a while."""


@dataclass(slots=True)
class _Asked:
    began_s: float
    is_done: threading.Event = field(default_factory=threading.Event)
    is_well: bool = False


class Probe:
    """One thing that this process stands on. `ask` raises where it does not answer."""

    def __init__(self, name: str, ask: Callable[[], None]) -> None:
        self.name = name
        self._ask = ask
        self._lock = threading.Lock()
        self._last: _Asked | None = None

    def begin(self) -> _Asked:
        """Ask, unless it is being asked, or was a moment ago."""
        with self._lock:
            now = time.monotonic()
            last = self._last
            if last is None or (last.is_done.is_set() and now - last.began_s >= KEPT_S):
                last = self._last = _Asked(now)
                # Not waited for when the process ends.
                threading.Thread(target=self._run, args=(last,), name=f"probe {self.name}", daemon=True).start()
            return last

    def _run(self, asked: _Asked) -> None:
        try:
            self._ask()
            asked.is_well = True
        except Exception as error:  # noqa: BLE001  # whatever is the matter with it; a traceback each second helps nobody
            LOG.warning("%s does not answer: %s: %s", self.name, type(error).__name__, error)
        finally:
            asked.is_done.set()


def _database() -> None:
    own = connections.create_connection("default")
    try:
        with own.cursor() as cursor:
            cursor.execute("SELECT 1")
            cursor.fetchone()
    finally:
        own.close()


def _cache() -> None:
    caches["default"].get("health")


def _zookeeper() -> None:
    for hosts in _clusters():
        zookeeper.tree(ClusterAddress(0, hosts)).get("/sluice/instances")


def _clusters() -> list[str]:
    """The ZooKeeper of every cluster that is in use. Where the database does not say, the installation's own alone."""
    own: str = settings.ENVIRONMENT.zookeeper_hosts
    connection = connections.create_connection("default")
    try:
        with connection.cursor() as cursor:
            statement = f"SELECT zookeeper_hosts FROM {PhysicalCluster._meta.db_table} WHERE state <> %s ORDER BY id"  # noqa: S608, SLF001
            cursor.execute(statement, [ClusterState.RETIRED.value])
            return [hosts or own for (hosts,) in cursor.fetchall()] or [own]
    except Exception as error:  # noqa: BLE001  # that the database is away is told by its own probe
        LOG.info("which clusters there are is not known: %s", type(error).__name__)
        return [own]
    finally:
        connection.close()


def _worker() -> None:
    try:
        since = pulse.away_since()
    finally:
        connections["default"].close()  # this thread's own
    if since is not None:
        raise WorkersAway(f"none was heard since {since:%H:%M:%S}")


DATABASE = Probe("database", _database)
PROBES = (DATABASE, Probe("cache", _cache), Probe("zookeeper", _zookeeper), Probe("worker", _worker))


def _well() -> dict[str, bool]:
    """By name, whether each answers within `WITHIN_S`."""
    asked = [(probe, probe.begin()) for probe in PROBES]
    for _, each in asked:
        each.is_done.wait(max(0.0, each.began_s + WITHIN_S - time.monotonic()))
    return {probe.name: each.is_well for probe, each in asked}


def metrics_text() -> str:
    """Lines of /metrics: 1 for what answers, 0 for what is away."""
    lines = [f'sluice_part_up{{part="{name}"}} {int(is_well)}' for name, is_well in _well().items()]
    return "\n".join(["# TYPE sluice_part_up gauge", *lines]) + "\n"


@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """/health/live."""
    del request
    return JsonResponse({"status": "ok"}, headers=NOT_STORED)


@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """/health/ready."""
    well = _well()
    status = "ok" if all(well.values()) else "degraded" if well[DATABASE.name] else "unavailable"
    is_refused = status == "unavailable" or (status == "degraded" and request.GET.get("strict") == "1")
    told = {name: "ok" if is_well else "away" for name, is_well in well.items()}
    return JsonResponse({"status": status, **told}, status=503 if is_refused else 200, headers=NOT_STORED)
