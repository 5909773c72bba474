"""A worker and beat with nothing to do write nothing, and what goes wrong is still written. A real Redis and ZooKeeper."""

from __future__ import annotations

import logging
import time

import pytest

from .test_worker_killed import Stack, stack, wait_for  # noqa: F401  # a fixture

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def test_logs_of_idle_workers_do_not_grow(stack: Stack) -> None:  # noqa: F811
    stack.manage("migrate", "--verbosity=0")
    stack.manage("zookeeper_secure")  # the first who finds an empty cluster closes it, and says so
    stack.celery("worker")
    stack.celery("beat")
    worker, beat = stack.folder / "worker-0.log", stack.folder / "beat-1.log"
    wait_for(lambda: "ready." in worker.read_text() and "beat: Starting..." in beat.read_text(), stack)
    time.sleep(2)  # what they say at their start
    before = [path.read_text() for path in (worker, beat)]
    time.sleep(9)  # four times "offer operations", nearly two of the others
    after = [path.read_text() for path in (worker, beat)]
    assert [text.removeprefix(old) for text, old in zip(after, before, strict=True)] == ["", ""]


def test_a_task_that_fails_is_logged() -> None:
    for name in ("celery.app.trace", "celery.worker.strategy", "celery.beat"):
        assert logging.getLogger(name).isEnabledFor(logging.WARNING)
