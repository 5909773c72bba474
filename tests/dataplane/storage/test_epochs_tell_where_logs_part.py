"""The leader-epoch checkpoint and the answers of OffsetForLeaderEpoch."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.storage.checkpoints.epochs import Epochs
from dataplane.storage.log import appending, cutting, lookup
from tests.dataplane.storage.support import DIRECTORY, append, copy_of, new_files, open_log

PATH = f"{DIRECTORY}/leader-epoch-checkpoint"


def epochs_of(*entries, files=None) -> Epochs:
    """Saved, as by a sync of the log."""
    epochs = Epochs(files or new_files(), DIRECTORY)
    for epoch, start in entries:
        epochs.assign(epoch, start)
    epochs.saver()()
    return epochs


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, (-1, -1)),
        (1, (1, 10)),  # before the first known: nothing of it is in this log
        (2, (2, 20)),
        (3, (2, 20)),  # no leader of epoch 3 wrote anything: what 2 wrote ends at 20
        (5, (5, 30)),
        (7, (7, 44)),  # the newest ends where the log does
        (8, (-1, -1)),  # newer than all this log knows
    ],
)
def test_where_an_epoch_ended(asked, answer):
    assert epochs_of((2, 10), (5, 20), (7, 30)).end_offset(asked, 44) == answer


def test_without_epochs_there_is_no_answer():
    assert epochs_of().end_offset(0, 5) == (-1, -1)
    assert epochs_of().latest() == -1


def test_the_file_has_kafkas_format_and_is_read_back():
    files = new_files()
    epochs_of((2, 10), (5, 20), files=files)
    assert files.read_file(PATH) == b"0\n2\n2 10\n5 20\n"
    assert Epochs(files, DIRECTORY).entries() == [(2, 10), (5, 20)]
    assert Epochs(files, DIRECTORY).latest() == 5


@pytest.mark.parametrize("content", [b"", b"1\n1\n2 10\n", b"0\n2\n2 10\n", b"0\n1\nx y\n", b"\xff\xfe", b"0\nx\n"])
def test_a_damaged_file_counts_as_absent(content):
    files = new_files()
    files.write_file(PATH, content)
    assert Epochs(files, DIRECTORY).entries() == []


def test_an_epoch_that_wrote_nothing_leaves_no_entry():
    assert epochs_of((2, 10), (3, 20), (4, 20)).entries() == [(2, 10), (4, 20)]


def test_assigning_what_is_known_writes_nothing():
    files = new_files()
    epochs = epochs_of((2, 10), files=files)
    files.fault = lambda operation, path: pytest.fail(f"{operation} {path}")
    epochs.assign(2, 10)


def test_an_epoch_that_begins_is_known_and_costs_no_write():
    files = new_files()
    epochs = epochs_of((2, 10), files=files)
    files.fault = lambda operation, path: pytest.fail(f"{operation} {path}")
    epochs.begin(5, 20)
    assert epochs.end_offset(2, log_end=20) == (2, 20)
    assert epochs.end_offset(5, log_end=20) == (5, 20)
    assert epochs.is_saved()  # it has no batch


def test_an_epoch_with_a_batch_is_to_be_saved_and_costs_no_write_before():
    files = new_files()
    epochs = epochs_of((2, 10), files=files)
    epochs.begin(5, 20)
    epochs.assign(5, 20)
    assert not epochs.is_saved()
    assert Epochs(files, DIRECTORY).entries() == [(2, 10)]
    epochs.saver()()
    assert epochs.is_saved()
    assert Epochs(files, DIRECTORY).entries() == [(2, 10), (5, 20)]


def test_an_epoch_in_which_another_wrote_takes_the_place_of_one_that_only_began():
    epochs = epochs_of((2, 10))
    epochs.begin(7, 20)
    epochs.assign(5, 20)
    assert epochs.entries() == [(2, 10), (5, 20)]
    assert epochs.in_log == 5


@pytest.mark.parametrize("is_written", [False, True])
def test_what_the_file_says_and_is_not_so_any_more_is_taken_back_at_once(is_written):
    """Recovery believes an epoch of the file over a batch of an older one."""
    files = new_files()
    epochs = epochs_of((2, 10), files=files)
    epochs.assign(7, 20)
    late = epochs.saver()
    if is_written:
        late()
    epochs.assign(5, 20)
    late()
    assert Epochs(files, DIRECTORY).entries() == [(2, 10), (5, 20)]


def test_what_is_saved_late_takes_nothing_back():
    files = new_files()
    epochs = epochs_of((2, 10), files=files)
    epochs.assign(5, 20)
    first = epochs.saver()
    epochs.assign(7, 30)
    second = epochs.saver()
    second()
    first()
    assert Epochs(files, DIRECTORY).entries() == [(2, 10), (5, 20), (7, 30)]
    epochs.assign(9, 40)
    third = epochs.saver()
    epochs.truncate_from_end(30)
    third()
    assert Epochs(files, DIRECTORY).entries() == [(2, 10), (5, 20)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["batch", "cut", "saver", "save"]), st.integers(0, 3)), max_size=20))
def test_a_stop_at_any_time_leaves_a_file_that_the_batches_complete(steps):
    """A log grows by batches of the same or newer epochs, and is cut; what is saved may be saved late."""
    files = new_files()
    epochs, batches, savers = Epochs(files, DIRECTORY), [], []
    for step, number in steps:
        if step == "batch":
            epoch = (batches[-1] if batches else 0) + number
            if epoch > epochs.in_log:
                epochs.assign(epoch, len(batches))
            batches.append(epoch)
        elif step == "cut":
            del batches[max(0, len(batches) - number) :]
            epochs.truncate_from_end(len(batches))
        elif step == "saver":
            savers.append(epochs.saver())
        elif savers:
            savers.pop(number % len(savers))()
        recovered = Epochs(files, DIRECTORY)
        for offset, epoch in enumerate(batches):
            if epoch > recovered.newest:
                recovered.assign(epoch, offset)
        recovered.truncate_from_end(len(batches))
        assert recovered.entries() == epochs.entries()
        assert [recovered.epoch_of(offset) for offset in range(len(batches))] == batches
        if recovered.entries() != Epochs(files, DIRECTORY).entries():
            assert not epochs.is_saved()


def test_cutting_the_end_and_the_start():
    epochs = epochs_of((2, 10), (5, 20), (7, 30))
    epochs.truncate_from_end(30)
    assert (epochs.entries(), epochs.latest()) == ([(2, 10), (5, 20)], 5)
    epochs.truncate_from_start(15)
    assert epochs.entries() == [(2, 15), (5, 20)]
    epochs.truncate_from_start(20)
    assert epochs.entries() == [(5, 20)]
    epochs.truncate_from_start(5)
    assert epochs.entries() == [(5, 20)]
    epochs.truncate_from_end(0)
    assert (epochs.entries(), epochs.latest()) == ([], -1)


def test_the_epoch_of_an_offset():
    epochs = epochs_of((2, 10), (5, 20))
    assert [epochs.epoch_of(offset) for offset in (9, 10, 19, 20, 99)] == [-1, 2, 2, 5, 5]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 30)), max_size=12))
def test_both_columns_always_grow_and_the_file_agrees(assignments):
    files = new_files()
    epochs = epochs_of(*assignments, files=files)
    entries = epochs.entries()
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(entries))
    assert Epochs(files, DIRECTORY).entries() == entries
    if assignments:
        epoch, start = assignments[-1]
        assert entries[-1][0] == epoch
        assert entries[-1][1] <= start
        assert (
            entries[-1] == (epoch, start) or (epoch, entries[-1][1]) in assignments
        )  # said before, at an earlier place


def test_an_epoch_said_again_at_a_later_place_keeps_its_beginning():
    epochs = epochs_of((2, 10), (5, 20), (5, 30))
    assert epochs.entries() == [(2, 10), (5, 20)]
    epochs.assign(5, 15)
    assert epochs.entries() == [(2, 10), (5, 15)]


def follow(follower, leader) -> None:
    """Truncate by epochs until both agree (KIP-279), then copy."""
    rounds = 0
    while follower.epochs.latest() >= 0:
        rounds += 1
        assert rounds < 50, "every round forgets an epoch"
        epoch, end = leader.epochs.end_offset(follower.epochs.latest(), leader.end_offset)
        assert epoch >= 0
        _, own_end = follower.epochs.end_offset(epoch, follower.end_offset)
        target = min(end, own_end if own_end >= 0 else end)
        agreed = epoch == follower.epochs.latest()
        cutting.truncate(follower, target)
        if agreed:
            break
    missing = bytearray(b"".join(bytes(b) for _, b in lookup.batches(leader, follower.end_offset, leader.end_offset)))
    appending.stage_replica(follower, memoryview(missing))
    appending.commit(follower)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4), st.booleans()), min_size=1, max_size=14))
def test_two_logs_that_parted_become_equal_again(history):
    """Leadership moves between two logs that copy from each other only now and then."""
    logs = [open_log(new_files()), open_log(new_files())]
    for epoch, (second_leads, appends, copies) in enumerate(history):
        leader, follower = logs[second_leads], logs[not second_leads]
        leader.epochs.assign(epoch, leader.end_offset)
        for n in range(appends):
            append(leader, f"{epoch}/{n}", epoch=epoch)
        if copies:
            follow(follower, leader)
            assert copy_of(follower) == copy_of(leader)
            assert [e for e in follower.epochs.entries() if e in leader.epochs.entries()] == follower.epochs.entries()


def test_cutting_at_the_very_end_forgets_an_epoch_that_wrote_nothing():
    log = open_log(new_files())
    append(log, "a", epoch=1)
    log.epochs.assign(2, 1)
    cutting.truncate(log, 1)
    assert log.epochs.entries() == [(1, 0)]
    assert log.end_offset == 1
