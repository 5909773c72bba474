"""The producers' state of a log: read when somebody asks, kept over restarts by snapshots, cut with the log.

Of an idle log not even the snapshot is read. Snapshots are written when a segment ends and at an orderly stop.

With the producers comes what is known of transactions (`checkpoints.transactions`). Who reads from a log that nobody has
written to since it was opened needs to know that, and nothing of the producers: a look at its snapshot nearly always says that
there are none (`learn_transactions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.storage.checkpoints import snapshots
from dataplane.storage.checkpoints.producers import Producers
from dataplane.storage.checkpoints.snapshots import SnapshotError
from dataplane.storage.checkpoints.transactions import UNKNOWN
from dataplane.storage.startup import recovery

if TYPE_CHECKING:
    from dataplane.storage.log.state import Log
    from dataplane.tasks import Future


def producers_of(log: Log) -> Producers:
    """Read from the snapshot, and the headers behind it, when they are first asked for. Raises OSError.

    Rejected: `Log.__getattr__`, which is asked only once, but makes every other attribute of a log slower: appending a batch
    took half as long again.
    """
    state = log.producer_state
    if state.known is None:
        producers = Producers(state.newcomers, log.transactions)
        try:
            _load(log, producers, state.unread_to)
        except OSError:
            log.transactions.forget()
            raise
        state.known = producers
    return state.known


def learn_transactions(log: Log) -> None:
    """Know of the transactions that are open in a log. Raises OSError."""
    if log.transactions.first_unstable != UNKNOWN:
        return
    if not _may_have_transactions(log):
        log.transactions.clear()
    else:
        _ = producers_of(log)


def _may_have_transactions(log: Log) -> bool:
    state = log.producer_state
    if state.unread_to not in state.snapshots:
        return True
    try:
        return snapshots.has_transactions(log.shared.files, log.directory, state.unread_to)
    except (SnapshotError, FileNotFoundError):
        return True


def _load(log: Log, producers: Producers, end: int) -> None:
    state = log.producer_state
    recovery.load_producers(producers, log.shared.files, log.directory, state.snapshots, log.segments, end)


def expire_producers(log: Log, now_ms: int, expiration_ms: int) -> None:
    """Forget those that have written nothing for so long; of an idle log nothing is known that could be."""
    known = log.producer_state.known
    if known is not None:
        known.expire(now_ms, expiration_ms)


def snapshot(log: Log) -> tuple[str, bytes]:
    """Path and content of a snapshot of the producers' state. Nothing may be staged. Raises OSError."""
    producers = producers_of(log)
    content = snapshots.pack(producers.states(log.shared.now_ms()), log.transactions.ended())
    return f"{log.directory}/{snapshots.file_name(log.end_offset)}", content


def snapshot_in_background(log: Log) -> None:
    """Whether it succeeds does not matter much: it is a short cut for the next start."""
    offset, truncations, (files, background, *_) = log.end_offset, log.truncations, log.shared
    path, content = snapshot(log)

    def written(future: Future[bool | None]) -> None:
        if future.error is not None or not future.result():
            return
        if truncations != log.truncations:
            background.run(lambda: log.presence.run(remove))
            return
        known = log.producer_state.snapshots
        if offset not in known:  # a log that is closed meanwhile has written it
            known.append(offset)
        try:
            forget_snapshots(log, snapshots.superfluous(known, log.recovery_point))
        except OSError as error:  # there is nobody to raise it to
            log.fail(error)

    def write() -> bool:
        if truncations != log.truncations:  # it is of another log, and would be believed by the next start
            return False
        files.write_file(path, content)
        return True

    def remove() -> None:
        files.remove(path)
        files.sync_directory(log.directory)  # by a power cut it would come back, and the log may have grown to it again

    background.run(lambda: log.presence.run(write)).then(written)


def forget_snapshots(log: Log, offsets: list[int]) -> None:
    """Remove them. Raises OSError."""
    for offset in offsets:
        log.producer_state.snapshots.remove(offset)
        log.shared.files.remove(f"{log.directory}/{snapshots.file_name(offset)}")


def cut_producers(log: Log, end: int) -> None:
    """The log ends here now. Raises OSError."""
    state = log.producer_state
    if state.known is None:
        state.unread_to = min(state.unread_to, end)
        log.transactions.forget()
    elif state.known.holds_any_from(end):
        _load(log, state.known, end)
    else:
        state.known.cut(end)
