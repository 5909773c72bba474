"""Threads of the background do not take the processor from the loop."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from dataplane.background import ThreadBackground


def now(callback) -> None:
    callback()


@pytest.fixture
def background():
    made = ThreadBackground(SimpleNamespace(call_threadsafe=now))
    yield made
    made.close()


def policy(background) -> int:
    found: list[int] = []
    background.run(lambda: found.append(os.sched_getscheduler(0)))
    background.close()
    return found[0]


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="Linux has it")
def test_its_threads_let_a_thread_that_runs_go_on(background):
    assert policy(background) == os.SCHED_BATCH
    assert os.sched_getscheduler(0) == os.SCHED_OTHER, "the loop's thread is as it was"


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="Linux has it")
def test_where_that_is_not_allowed_they_work_all_the_same(background, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    assert policy(background) == os.SCHED_OTHER
