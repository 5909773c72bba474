"""What comes of each request, timer and marker in each state of a transactional id: the specification, as tables.

A cell says

    later, fenced, …      what is told at once (`WORDS`), and nothing changes
    Ongoing               this state is stored, and then NONE is told, where somebody has asked
    Empty+1               likewise, with the next epoch; who asked for an epoch is told this one
    Empty as 9/0          likewise, with another producer id
    …, then later         this is told instead, when it is stored
    markers               markers are written
    -                     nothing

and is what Apache Kafka 4 does (KIP-98, KIP-360, KIP-890), of producers that know `transaction.version` 2 (`raise`: EndTxn from
version 5 on) and of older ones. Who asks is the present producer of the id (`its`, producer id 7 in epoch 3 unless a table says
something else), one of the epoch before or of an older one, or another producer id.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from dataplane.coordination.effects import Begin, Reply, Store
from dataplane.protocol.errors import ErrorCode
from dataplane.transactions.events import (
    AddPartitions,
    EndAndRaise,
    EndTransaction,
    Expired,
    Initialise,
    MarkersWritten,
    ProducerResult,
    Resume,
    Stored,
    TimedOut,
)
from dataplane.transactions.model import LAST_EPOCH, RAISING, Transaction, TransactionState
from dataplane.transactions.settings import TransactionSettings
from dataplane.transactions.state import _HANDLERS, handle, verified

S, E = TransactionState, ErrorCode
SETTINGS = TransactionSettings(id_expiration_ms=1_000_000)
NOW = 5_000_000
PID, EPOCH, NEXT = 7, 3, 9
A, B = ("orders", 0), ("orders", 1)
WORDS = {
    E.NONE: "ok",
    E.CONCURRENT_TRANSACTIONS: "later",
    E.PRODUCER_FENCED: "fenced",
    E.INVALID_PRODUCER_ID_MAPPING: "another",
    E.INVALID_TXN_STATE: "invalid",
    E.POLICY_VIOLATION: "full",
    E.TRANSACTION_ABORTABLE: "abortable",
}


def txn(state, **more):
    """An id that nobody has used for so long that it expires. What is decided waits for its markers."""
    pending = {S.PREPARE_COMMIT: S.COMPLETE_COMMIT, S.PREPARE_ABORT: S.COMPLETE_ABORT}.get(state)
    is_open = state in (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT)
    fields = {"pending": pending, "updated_ms": NOW - 1_000_000, "started_ms": NOW - 1_000_000, **more}
    partitions = dict.fromkeys((A,) if is_open else ())
    return Transaction(
        "t", fields.pop("producer_id", PID), fields.pop("epoch", EPOCH), 60_000, state, partitions, **fields
    )


STATES = {
    "Empty": txn(S.EMPTY),
    "Ongoing": txn(S.ONGOING),
    "PrepareCommit": txn(S.PREPARE_COMMIT),
    "PrepareAbort": txn(S.PREPARE_ABORT),
    "CompleteCommit": txn(S.COMPLETE_COMMIT),
    "CompleteAbort": txn(S.COMPLETE_ABORT),
}


# --- what may happen --------------------------------------------------------------------------------------------------


def init(known=None, new=None):
    return Initialise(60_000, known, new, token=1)


def add(who, partition=B, **more):
    return AddPartitions(*who, (partition,), token=1, **more)


def end(who, *, is_commit):
    return EndTransaction(*who, is_commit, token=1)


def raising(who, *, is_commit, new=None):
    return EndAndRaise(*who, is_commit, new, token=1)


ITS, BEFORE, OLDER, OTHER = (PID, EPOCH), (PID, EPOCH - 1), (PID, EPOCH - 2), (PID + 1, EPOCH)
EVENTS = {
    "init": init(),
    "init, its epoch": init(ITS),
    "init, the epoch before": init(BEFORE),
    "init, an older epoch": init(OLDER),
    "init, another id": init(OTHER),
    "add": add(ITS),
    "add, in it already": add(ITS, A),
    "add, no more may begin": add(ITS, may_begin=False),
    "add, for a group": add(ITS, is_of_group=True, room=0),
    "add, no room": add(ITS, room=0),
    "add, the epoch before": add(BEFORE),
    "add, another id": add(OTHER),
    "commit": end(ITS, is_commit=True),
    "abort": end(ITS, is_commit=False),
    "commit, the epoch before": end(BEFORE, is_commit=True),
    "abort, another id": end(OTHER, is_commit=False),
    "commit and raise": raising(ITS, is_commit=True),
    "abort and raise": raising(ITS, is_commit=False),
    "commit and raise, the epoch before": raising(BEFORE, is_commit=True),
    "abort and raise, the epoch before": raising(BEFORE, is_commit=False),
    "commit and raise, an older epoch": raising(OLDER, is_commit=True),
    "abort and raise, an older epoch": raising(OLDER, is_commit=False),
    "commit and raise, another id": raising(OTHER, is_commit=True),
    "its time is over": TimedOut(),
    "nobody has used it": Expired(),
    "markers written": MarkersWritten(*ITS),
    "markers written, of before": MarkersWritten(*BEFORE),
    "loaded": Resume(),
}
AT_LAST = {
    "init": init(new=NEXT),
    "init, no id to give": init(),
    "init, its epoch": init((PID, LAST_EPOCH), NEXT),
    "add": add((PID, LAST_EPOCH)),
    "commit": end((PID, LAST_EPOCH), is_commit=True),
    "commit and raise": raising((PID, LAST_EPOCH), is_commit=True, new=NEXT),
    "abort and raise": raising((PID, LAST_EPOCH), is_commit=False, new=NEXT),
    "commit and raise, no id to give": raising((PID, LAST_EPOCH), is_commit=True),
    "abort and raise, no id to give": raising((PID, LAST_EPOCH), is_commit=False),
    "its time is over": TimedOut(),
}
GOES_ON = {
    "init, the old id": init((PID, LAST_EPOCH)),
    "init, the old id, an older epoch": init((PID, LAST_EPOCH - 1)),
    "init, the new id": init((NEXT, 0)),
    "add, the old id": add((PID, LAST_EPOCH)),
    "add, the new id": add((NEXT, 0)),
    "add, the new id, a later epoch": add((NEXT, 1)),
    "commit and raise, the old id": raising((PID, LAST_EPOCH), is_commit=True),
    "abort and raise, the old id": raising((PID, LAST_EPOCH), is_commit=False),
    "commit and raise, the old id, an older epoch": raising((PID, LAST_EPOCH - 1), is_commit=True),
    "abort and raise, the new id": raising((NEXT, 0), is_commit=False),
    "markers written": MarkersWritten(PID, LAST_EPOCH + 1),
}


# --- the tables -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of events, columns of states."""

    states: dict[str, Transaction]
    events: dict[str, object]
    text: str

    def rows(self):
        """(event, state, what comes of it)."""
        for line in self.text.strip().splitlines():
            name, *cells = (cell.strip() for cell in line.split("|"))
            assert len(cells) == len(self.states), f"{name}: {len(cells)} cells"
            for state, cell in zip(self.states, cells, strict=True):
                yield name, state, cell


OLD_PRODUCERS = Table(
    STATES,
    EVENTS,
    """
init                               | Empty+1        | PrepareAbort+1, then later | later | later | Empty+1        | Empty+1
init, its epoch                    | Empty+1        | PrepareAbort+1, then later | later | later | Empty+1        | Empty+1
init, the epoch before             | fenced         | PrepareAbort+1, then later | later | later | fenced         | fenced
init, an older epoch               | fenced         | PrepareAbort+1, then later | later | later | fenced         | fenced
init, another id                   | fenced         | fenced         | later          | later          | fenced         | fenced
add                                | Ongoing        | Ongoing        | later          | later          | Ongoing        | Ongoing
add, in it already                 | Ongoing        | ok             | later          | later          | Ongoing        | Ongoing
add, no more may begin             | full           | Ongoing        | later          | later          | full           | full
add, for a group                   | Ongoing        | Ongoing        | later          | later          | Ongoing        | Ongoing
add, no room                       | full           | full           | later          | later          | full           | full
add, the epoch before              | fenced         | fenced         | fenced         | fenced         | fenced         | fenced
add, another id                    | another        | another        | another        | another        | another        | another
commit                             | invalid        | PrepareCommit  | later          | later          | ok             | invalid
abort                              | invalid        | PrepareAbort   | later          | later          | invalid        | ok
commit, the epoch before           | fenced         | fenced         | fenced         | fenced         | fenced         | fenced
abort, another id                  | another        | another        | another        | another        | another        | another
commit and raise                   | invalid        | PrepareCommit+1 | later         | later          | invalid        | invalid
abort and raise                    | PrepareAbort+1 | PrepareAbort+1 | later    | later      | PrepareAbort+1 | PrepareAbort+1
commit and raise, the epoch before | fenced         | fenced         | fenced         | fenced         | fenced         | fenced
abort and raise, the epoch before  | fenced         | fenced         | fenced         | fenced         | fenced         | fenced
commit and raise, an older epoch   | fenced         | fenced         | fenced         | fenced         | fenced         | fenced
abort and raise, an older epoch    | fenced         | fenced         | fenced         | fenced         | fenced         | fenced
commit and raise, another id       | another        | another        | another        | another        | another        | another
its time is over                   | -              | PrepareAbort+1 | -              | -              | -              | -
nobody has used it                 | Dead           | -              | -              | -              | Dead           | Dead
markers written                    | -              | -              | CompleteCommit | CompleteAbort  | -              | -
markers written, of before         | -              | -              | -              | -              | -              | -
loaded                             | -              | -              | markers        | markers        | -              | -
""",
)
"""The last transaction, if there was one, left the epoch as it was."""

OWN_EPOCHS = Table(
    {
        name: replace(state, version=RAISING, last_producer_epoch=-1 if name == "Ongoing" else EPOCH - 1)
        for name, state in STATES.items()
        if name != "Empty"
    },
    EVENTS,
    """
init                               | PrepareAbort+1, then later | later | later | Empty+1                | Empty+1
init, its epoch                    | PrepareAbort+1, then later | later | later | Empty+1                | Empty+1
init, the epoch before             | PrepareAbort+1, then later | later | later | Empty                  | Empty
init, an older epoch               | PrepareAbort+1, then later | later | later | fenced                 | fenced
init, another id                   | fenced          | later          | later          | fenced         | fenced
add                                | Ongoing         | later          | later          | Ongoing        | Ongoing
add, in it already                 | ok              | later          | later          | Ongoing        | Ongoing
add, no more may begin             | Ongoing         | later          | later          | full           | full
add, for a group                   | Ongoing         | later          | later          | Ongoing        | Ongoing
add, no room                       | full            | later          | later          | full           | full
add, the epoch before              | fenced          | fenced         | fenced         | fenced         | fenced
add, another id                    | another         | another        | another        | another        | another
commit                             | PrepareCommit   | later          | later          | ok             | invalid
abort                              | PrepareAbort    | later          | later          | invalid        | ok
commit, the epoch before           | fenced          | fenced         | fenced         | fenced         | fenced
abort, another id                  | another         | another        | another        | another        | another
commit and raise                   | PrepareCommit+1 | later          | later          | invalid        | invalid
abort and raise                    | PrepareAbort+1  | later          | later          | PrepareAbort+1 | PrepareAbort+1
commit and raise, the epoch before | fenced          | later          | later          | ok             | invalid
abort and raise, the epoch before  | fenced          | later          | later          | invalid        | ok
commit and raise, an older epoch   | fenced          | fenced         | fenced         | fenced         | fenced
abort and raise, an older epoch    | fenced          | fenced         | fenced         | fenced         | fenced
commit and raise, another id       | another         | another        | another        | another        | another
its time is over                   | PrepareAbort+1  | -              | -              | -              | -
nobody has used it                 | -               | -              | -              | Dead           | Dead
markers written                    | -               | CompleteCommit | CompleteAbort  | -              | -
markers written, of before         | -               | -              | -              | -              | -
loaded                             | -               | markers        | markers        | -              | -
""",
)
"""The transaction raises the epoch with its end: what is decided, or over, was begun in the epoch before."""

ON_ITS_WAY = Table(
    {
        "Empty to Empty": txn(S.EMPTY, pending=S.EMPTY),
        "Empty to Ongoing": txn(S.EMPTY, pending=S.ONGOING),
        "Ongoing to Ongoing": txn(S.ONGOING, pending=S.ONGOING),
        "Ongoing to PrepareCommit": txn(S.ONGOING, pending=S.PREPARE_COMMIT),
        "its producer is fenced": txn(S.ONGOING, pending=S.PREPARE_ABORT, epoch=EPOCH + 1, has_failed_fence=True),
        "CompleteAbort to Dead": txn(S.COMPLETE_ABORT, pending=S.DEAD),
    },
    EVENTS,
    """
init                               | later   | later   | later   | later   | later   | later
init, its epoch                    | later   | later   | later   | later   | later   | later
init, the epoch before             | later   | later   | later   | later   | later   | later
init, an older epoch               | later   | later   | later   | later   | later   | later
init, another id                   | later   | later   | later   | later   | later   | later
add                                | later   | later   | later   | later   | fenced  | later
add, in it already                 | later   | later   | later   | later   | fenced  | later
add, no more may begin             | later   | later   | later   | later   | fenced  | later
add, for a group                   | later   | later   | later   | later   | fenced  | later
add, no room                       | later   | later   | later   | later   | fenced  | later
add, the epoch before              | fenced  | fenced  | fenced  | fenced  | fenced  | fenced
add, another id                    | another | another | another | another | another | another
commit                             | later   | later   | later   | later   | fenced  | later
abort                              | later   | later   | later   | later   | fenced  | later
commit, the epoch before           | fenced  | fenced  | fenced  | fenced  | fenced  | fenced
abort, another id                  | another | another | another | another | another | another
commit and raise                   | later   | later   | later   | later   | fenced  | later
abort and raise                    | later   | later   | later   | later   | fenced  | later
commit and raise, the epoch before | fenced  | fenced  | fenced  | fenced  | fenced  | fenced
abort and raise, the epoch before  | fenced  | fenced  | fenced  | fenced  | fenced  | fenced
commit and raise, an older epoch   | fenced  | fenced  | fenced  | fenced  | fenced  | fenced
abort and raise, an older epoch    | fenced  | fenced  | fenced  | fenced  | fenced  | fenced
commit and raise, another id       | another | another | another | another | another | another
its time is over                   | -       | -       | -       | -       | -       | -
nobody has used it                 | -       | -       | -       | -       | -       | -
markers written                    | -       | -       | -       | -       | -       | -
markers written, of before         | -       | -       | -       | -       | -       | -
loaded                             | -       | -       | -       | -       | -       | -
""",
)
"""Something is on its way to the log. A fence holds from the moment at which it is proposed: `its` epoch is the fenced one."""

LAST_EPOCHS = Table(
    {
        name: replace(STATES[name], producer_epoch=LAST_EPOCH)
        for name in ("Empty", "Ongoing", "CompleteCommit", "CompleteAbort")
    },
    AT_LAST,
    """
init                            | Empty as 9/0   | PrepareAbort+1, then later | Empty as 9/0   | Empty as 9/0
init, no id to give             | later          | PrepareAbort+1, then later | later          | later
init, its epoch                 | Empty as 9/0   | PrepareAbort+1, then later | Empty as 9/0   | Empty as 9/0
add                             | Ongoing        | Ongoing                    | Ongoing        | Ongoing
commit                          | invalid        | PrepareCommit              | ok             | invalid
commit and raise                | invalid        | PrepareCommit+1            | invalid        | invalid
abort and raise                 | PrepareAbort+1 | PrepareAbort+1             | PrepareAbort+1 | PrepareAbort+1
commit and raise, no id to give | invalid        | later                      | invalid        | invalid
abort and raise, no id to give  | later          | later                      | later          | later
its time is over                | -              | PrepareAbort+1             | -              | -
""",
)
"""The producer has the last epoch of its id. One more is kept for markers, and for fencing it."""

ANOTHER_ID = Table(
    {
        "PrepareCommit": txn(
            S.PREPARE_COMMIT,
            epoch=LAST_EPOCH + 1,
            last_producer_epoch=LAST_EPOCH,
            next_producer_id=NEXT,
            version=RAISING,
        ),
        "CompleteCommit": txn(
            S.COMPLETE_COMMIT,
            producer_id=NEXT,
            epoch=0,
            last_producer_id=PID,
            last_producer_epoch=LAST_EPOCH,
            version=RAISING,
        ),
    },
    GOES_ON,
    """
init, the old id                             | later                 | Empty
init, the old id, an older epoch             | later                 | fenced
init, the new id                             | later                 | Empty+1
add, the old id                              | fenced                | another
add, the new id                              | later                 | Ongoing
add, the new id, a later epoch               | another               | fenced
commit and raise, the old id                 | later                 | ok
abort and raise, the old id                  | later                 | invalid
commit and raise, the old id, an older epoch | fenced                | another
abort and raise, the new id                  | later                 | PrepareAbort+1
markers written                              | CompleteCommit as 9/0 | -
""",
)
"""Its last epoch has ended a transaction, and the producer goes on with another id."""

NOBODYS = Table(
    {"there is none": Transaction("t")},
    {
        "init": init(new=NEXT),
        "init, no id to give": init(),
        "init, an epoch that it says it had": init(ITS, NEXT),
        "its time is over": TimedOut(),
        "loaded": Resume(),
    },
    """
init                               | Empty as 9/0
init, no id to give                | later
init, an epoch that it says it had | Empty as 9/0
its time is over                   | -
loaded                             | -
""",
)
"""Of an id that nobody has initialised the coordinator asks nothing else (`test_coordinator`)."""

TABLES = {
    "of older producers": OLD_PRODUCERS,
    "with an epoch for each transaction": OWN_EPOCHS,
    "on its way to the log": ON_ITS_WAY,
    "in the last epoch": LAST_EPOCHS,
    "with another id": ANOTHER_ID,
    "nobody's": NOBODYS,
}


# --- the walk ---------------------------------------------------------------------------------------------------------


def outcome(before, event):
    """A cell, and what holds of each."""
    proposed, effects = handle(before, event, SETTINGS, NOW)
    replies = [effect.result for effect in effects if isinstance(effect, Reply)]
    stores = [effect for effect in effects if isinstance(effect, Store)]
    assert len(replies) + len(stores) <= 1, "it is told at once, or when it is stored"
    if replies:
        assert proposed == before, "what is told at once changes nothing"
        return told(replies[0])
    if not stores:
        assert replace(proposed) == before
        return "markers" if any(isinstance(effect, Begin) for effect in effects) else "-"
    to = stores[0].then.to
    assert proposed.state is before.state, "nothing is believed before it is stored"
    assert proposed.pending is to.state
    after, effects = handle(proposed, stores[0].then, SETTINGS, NOW)
    (*replies,) = [effect.result for effect in effects if isinstance(effect, Reply)]
    assert len(replies) == (getattr(event, "token", None) is not None), "who has asked is told, once"
    cell = changed(before, to, after)
    if not replies:
        return cell
    if isinstance(replies[0], ProducerResult) and replies[0].error == E.NONE:
        assert (replies[0].producer_id, replies[0].producer_epoch) == after.to_go_on_with
    word = told(replies[0])
    return cell if word == "ok" else f"{cell}, then {word}"


def told(result):
    return WORDS[result.error if isinstance(result, ProducerResult) else result]


def changed(before, to, after):
    if to.state is S.DEAD:
        assert after.is_blank()
        return "Dead"
    assert after.state is to.state
    if to.producer_id != before.producer_id:
        return f"{to.state.value} as {to.producer_id}/{to.producer_epoch}"
    raised = to.producer_epoch - before.producer_epoch
    return f"{to.state.value}+{raised}" if raised else to.state.value


CELLS = [
    pytest.param(table, event, state, cell, id=f"{name}: {event} | {state}")
    for name, table in TABLES.items()
    for event, state, cell in table.rows()
]


@pytest.mark.parametrize(("table", "event", "state", "cell"), CELLS)
def test_it_is_as_the_table_says(table, event, state, cell):
    assert outcome(table.states[state], table.events[event]) == cell


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_no_event_is_left_out(table):
    assert [line.split("|")[0].strip() for line in table.text.strip().splitlines()] == list(table.events)


def test_every_state_and_every_event_is_in_a_table():
    states = {transaction.state for table in TABLES.values() for transaction in table.states.values()}
    pending = {transaction.pending for table in TABLES.values() for transaction in table.states.values()}
    assert states | pending - {None} == set(S) - {S.PREPARE_EPOCH_FENCE}
    events = {type(event) for table in TABLES.values() for event in table.events.values()}
    assert events == set(_HANDLERS) - {Stored}, "what is stored comes with each of them"


# --- verification -----------------------------------------------------------------------------------------------------

VERIFIED = """
its, in it     | abortable | ok        | later   | later   | abortable | abortable
its, elsewhere | abortable | abortable | later   | later   | abortable | abortable
before, in it  | fenced    | fenced    | fenced  | fenced  | fenced    | fenced
other, in it   | another   | another   | another | another | another   | another
"""
ASKED = {
    "its, in it": (ITS, A),
    "its, elsewhere": (ITS, B),
    "before, in it": (BEFORE, A),
    "other, in it": (OTHER, A),
}


@pytest.mark.parametrize(("asked", "state", "cell"), list(Table(STATES, ASKED, VERIFIED).rows()))
@pytest.mark.parametrize("is_raising", [False, True])
def test_so_is_what_brokers_ask_before_they_append(asked, state, cell, is_raising):
    (who, partition) = ASKED[asked]
    transaction = replace(STATES[state], version=RAISING if is_raising else 0)
    assert verified(transaction, *who, [partition]) == {partition: next(c for c, word in WORDS.items() if word == cell)}
