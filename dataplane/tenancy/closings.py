"""Connections of instances are closed, of all instances by one piece of long work: a step of each in turn.

So a tenant with very many connections holds up nobody else's, and however many instances end at once, other long work of
the cluster's own finds its places (`slices`). Of an instance one pass is under way: what changes meanwhile it sees to.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from dataplane.slices import INTERNAL

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from dataplane.slices import Slices
    from dataplane.tasks import Future
    from dataplane.tenancy.instance import Instance

_log = logging.getLogger(__name__)


class Closings:
    """Those that are under way on a broker."""

    def __init__(self, slices: Slices | None, over: Callable[[Instance, Exception | None], None]) -> None:
        """Without `slices` all are closed at once.

        `over` is told of an instance whose pass has come to its end, or (a bug) to an error: then some may be open still.
        """
        self._slices, self._over = slices, over
        self._under_way: dict[Instance, Generator[None, None, None]] = {}
        self._has_begun = False

    def __contains__(self, instance: Instance) -> bool:
        return instance in self._under_way

    def begin(self, instance: Instance, steps: Generator[None, None, None]) -> None:
        """Close connections of an instance by these steps, or by those that are under way, which look again."""
        if instance in self._under_way:
            return
        if not instance.has_endings:  # nothing need wait for its turn then
            self._over(instance, None)
            return
        if not instance.must_look_at_all:  # nothing is new since a pass that has failed
            return
        self._under_way[instance] = steps
        if not self._has_begun:
            self._run()

    def _run(self) -> None:
        self._has_begun = True
        if self._slices is None:
            deque(self._steps(), maxlen=0)
            self._has_begun = False
        else:
            self._slices.run(INTERNAL, self._steps()).then(self._ended)

    def _ended(self, work: Future[None]) -> None:
        self._has_begun = False
        if work.error is not None:
            _log.error("what follows the end of an instance's connections was not done", exc_info=work.error)
        if self._under_way:
            self._run()

    def _steps(self) -> Generator[None, None, None]:
        while self._under_way:
            instance, steps = next(iter(self._under_way.items()))
            is_over = False
            error: Exception | None = None
            try:
                next(steps)
            except StopIteration:
                is_over = True
            except Exception as failure:  # noqa: BLE001 - the other instances' go on
                _log.exception("connections of %s were not closed", instance.spec.id)
                is_over, error = True, failure
            del self._under_way[instance]
            if is_over:
                self._over(instance, error)
            else:
                self._under_way[instance] = steps  # behind the others
            yield
