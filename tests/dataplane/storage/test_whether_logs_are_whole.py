"""A broker that returns says since when it has lost nothing: a killed process has not, a power cut may have."""

from __future__ import annotations

import errno

import pytest

from dataplane.config import BrokerConfig
from dataplane.storage.manager import LogManager
from dataplane.storage.startup.unclean_loss import UncleanLoss
from tests.crashpoints.workload import StoppedClock
from tests.support.memory_files import ImmediateBackground, MemoryFiles

HOMES = ("/a", "/b")
FIRST_LIFE, LATER = 30, 55


@pytest.fixture
def files() -> MemoryFiles:
    files = MemoryFiles()
    for home in HOMES:
        files.make_directory(home)
    return files


def opened(files: MemoryFiles, *, in_order: bool = False, homes: tuple[str, ...] = HOMES) -> UncleanLoss:
    loss = UncleanLoss(files, HOMES)
    for home in homes:
        loss.found(home, in_order=in_order)
    loss.opened()
    return loss


@pytest.fixture
def registered(files: MemoryFiles) -> UncleanLoss:
    loss = opened(files)
    assert loss.since is None
    loss.registered(FIRST_LIFE)
    return loss


def test_from_its_first_registration_a_broker_is_whole_and_a_new_session_changes_nothing(registered):
    registered.registered(LATER)
    assert registered.since == FIRST_LIFE


def test_a_killed_process_has_lost_nothing_however_often(files, registered):
    for _ in range(3):
        assert opened(files).since == FIRST_LIFE


def test_after_a_power_cut_it_is_whole_only_since_its_next_registration(files, registered):
    files.crash()
    back = opened(files)
    assert back.since is None
    back.registered(LATER)
    assert back.since == LATER
    assert opened(files).since == LATER


def test_a_power_cut_after_an_orderly_stop_takes_nothing_but_the_next_one_does(files, registered):
    files.crash()
    assert opened(files, in_order=True).since == FIRST_LIFE
    files.crash()
    assert opened(files).since is None


def test_a_second_power_cut_before_the_registration_is_not_forgotten(files, registered):
    files.crash()
    opened(files)
    assert opened(files).since is None


def test_an_orderly_stop_before_the_registration_forgets_no_power_cut(files, registered):
    files.crash()
    opened(files)
    assert opened(files, in_order=True).since is None


def test_a_power_cut_that_one_directory_missed_is_not_forgotten_either(files, registered):
    files.crash()
    mixed = UncleanLoss(files, HOMES)
    mixed.found("/a", in_order=True)
    mixed.found("/b", in_order=False)
    mixed.opened()
    assert mixed.since is None
    assert opened(files, in_order=True).since is None


def test_with_a_directory_missing_or_new_it_is_not_whole(files, registered):
    assert opened(files, homes=("/a",)).since is None
    files.remove("/b/whole-since")
    assert opened(files).since is None


def test_a_disk_that_refused_is_not_trusted_after_the_next_start_either(files, registered):
    registered.broken()
    registered.registered(LATER)
    assert registered.since is None
    assert opened(files).since is None


def test_what_cannot_be_written_is_not_claimed(files):
    loss = opened(files)

    def refuse(operation: str, path: str) -> None:
        if operation == "write_file":
            raise OSError(errno.ENOSPC, "full", path)

    files.fault = refuse
    loss.registered(FIRST_LIFE)
    assert loss.since is None


def test_where_nobody_can_tell_which_memory_it_is_only_an_orderly_stop_counts(files, registered, monkeypatch):
    monkeypatch.setattr(MemoryFiles, "memory", lambda _: "")
    assert opened(files, in_order=True).since == FIRST_LIFE
    assert opened(files).since is None


def start(files: MemoryFiles) -> LogManager:
    config = BrokerConfig(1, HOMES, ("127.0.0.1", 0))
    manager = LogManager(files, StoppedClock(), ImmediateBackground(), config)
    manager.open_all()
    return manager


@pytest.fixture
def lost_power(files) -> MemoryFiles:
    start(files).unclean_loss.registered(FIRST_LIFE)
    files.crash()
    return files


def test_a_start_and_an_orderly_stop_without_registration_do_not_hide_a_power_cut(lost_power):
    start(lost_power).close()
    assert start(lost_power).unclean_loss.since is None


def test_a_directory_that_cannot_forget_is_offline_and_vouches_for_nothing_later(lost_power):
    def refuse(operation: str, path: str) -> None:
        if (operation, path) == ("remove", "/a/whole-since"):
            raise OSError(errno.EIO, "refused", path)

    lost_power.fault = refuse
    manager = start(lost_power)
    assert manager.directories() == [("/a", "refused"), ("/b", None)]
    manager.close()
    lost_power.fault = None
    assert start(lost_power).unclean_loss.since is None
