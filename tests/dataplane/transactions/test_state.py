"""What each request is told in each state, and what follows: Kafka's answers, event by event."""

from dataclasses import replace

import pytest

from dataplane.coordination.effects import Begin, Reply, SetTimer, Store
from dataplane.protocol.errors import ErrorCode
from dataplane.transactions.draft import RETRY_MS, RETRY_TIMER, TIMEOUT_TIMER
from dataplane.transactions.ending import needs_producer_id_to_go_on
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
    WriteMarkers,
)
from dataplane.transactions.model import (
    FOLLOWS,
    LAST_EPOCH,
    PREPARED,
    RAISING,
    Transaction,
    TransactionState,
    durable_value,
    loaded,
)
from dataplane.transactions.settings import TransactionSettings
from dataplane.transactions.state import handle, needs_producer_id, verified

S, E = TransactionState, ErrorCode
SETTINGS = TransactionSettings(max_partitions=3, id_expiration_ms=1_000_000)
NOW = 5_000_000
PID, EPOCH = 7, 3
A, B, C, D = ("orders", 0), ("orders", 1), ("events", 0), ("events", 1)
TIMEOUT_MS = 60_000


def txn(state=S.EMPTY, *partitions, **more):
    """As it is in a state: one that is decided waits for its markers."""
    pending = {S.PREPARE_COMMIT: S.COMPLETE_COMMIT, S.PREPARE_ABORT: S.COMPLETE_ABORT}.get(state)
    started = {"started_ms": NOW - 10} if state is not S.EMPTY else {}
    fields = {"updated_ms": NOW - 5, "pending": pending, **started, **more}
    return Transaction("t", PID, EPOCH, TIMEOUT_MS, state, dict.fromkeys(partitions), **fields)


def after(transaction, event, now_ms=NOW):
    return handle(transaction, event, SETTINGS, now_ms)


def reply(effects):
    """The one answer; None: there is none yet."""
    (*found,) = [effect.result for effect in effects if isinstance(effect, Reply)]
    assert len(found) <= 1
    return found[0] if found else None


def store(effects):
    (found,) = [effect for effect in effects if isinstance(effect, Store)]
    return found


def told(transaction, event):
    """The answer, which comes at once and changes nothing."""
    changed, effects = after(transaction, event)
    assert changed == transaction
    assert [type(effect) for effect in effects] == [Reply]
    return reply(effects)


def stored(transaction, event, error=E.NONE, now_ms=NOW):
    """After an event that is stored: the id, the effects of that."""
    proposed, effects = after(transaction, event, now_ms)
    assert reply(effects) is None, "nothing is answered before it is stored"
    return after(proposed, replace(store(effects).then, error=error), now_ms)


OPEN = txn(S.ONGOING, A)
READY = [txn(), txn(S.COMPLETE_COMMIT), txn(S.COMPLETE_ABORT)]
DECIDED = [txn(S.PREPARE_COMMIT, A), txn(S.PREPARE_ABORT, A)]
EVERY = [*READY, OPEN, *DECIDED]
NAMED = {"ids": lambda value: value.state.value if isinstance(value, Transaction) else None}

# --- InitProducerId ---------------------------------------------------------------------------------------------------


def init(known=None, new=None):
    return Initialise(TIMEOUT_MS, known, new, token=1)


def test_the_first_producer_of_an_id_has_a_new_producer_id_and_epoch_0():
    made, effects = stored(Transaction("t"), init(new=9))
    assert reply(effects) == ProducerResult(E.NONE, 9, 0)
    assert (made.producer_id, made.producer_epoch, made.state, made.pending) == (9, 0, S.EMPTY, None)
    assert made.updated_ms == NOW


@pytest.mark.parametrize("before", READY, **NAMED)
def test_each_further_producer_has_a_higher_epoch(before):
    made, effects = stored(before, init())
    assert reply(effects) == ProducerResult(E.NONE, PID, EPOCH + 1)
    assert made.state is S.EMPTY


@pytest.mark.parametrize("before", EVERY, **NAMED)
def test_while_anything_is_on_its_way_a_producer_is_to_come_again(before):
    assert told(replace(before, pending=S.EMPTY), init()) == ProducerResult(E.CONCURRENT_TRANSACTIONS)


@pytest.mark.parametrize("before", DECIDED, **NAMED)
def test_until_every_partition_has_its_marker_too(before):
    assert told(before, init()) == ProducerResult(E.CONCURRENT_TRANSACTIONS)


def test_an_open_transaction_is_aborted_with_a_higher_epoch_and_the_new_producer_comes_again():
    fenced, effects = after(OPEN, init())
    assert (fenced.producer_epoch, fenced.state, fenced.pending) == (EPOCH + 1, S.ONGOING, S.PREPARE_ABORT)
    assert store(effects).value.producer_epoch == EPOCH + 1
    decided, effects = after(fenced, store(effects).then)
    assert reply(effects) == ProducerResult(E.CONCURRENT_TRANSACTIONS)
    assert effects[-1] == Begin(WriteMarkers(decided))
    assert decided.state is S.PREPARE_ABORT
    ended, _ = stored(decided, MarkersWritten(PID, EPOCH + 1))
    _, effects = stored(ended, init())
    assert reply(effects) == ProducerResult(E.NONE, PID, EPOCH + 2)


def test_whoever_was_fenced_is_told_so_before_the_abort_is_stored():
    fenced, _ = after(OPEN, init())
    assert told(fenced, EndTransaction(PID, EPOCH, True)) == E.PRODUCER_FENCED
    assert told(fenced, AddPartitions(PID, EPOCH, (B,))) == E.PRODUCER_FENCED


def test_the_epoch_is_raised_once_however_often_the_log_refuses_the_abort():
    failed, effects = stored(OPEN, init(), E.COORDINATOR_NOT_AVAILABLE)
    assert reply(effects) == ProducerResult(E.COORDINATOR_NOT_AVAILABLE)
    assert (failed.state, failed.pending, failed.producer_epoch) == (S.ONGOING, None, EPOCH + 1)
    assert told(failed, EndTransaction(PID, EPOCH, True)) == E.PRODUCER_FENCED
    decided, _ = stored(failed, init())
    assert (decided.producer_epoch, decided.has_failed_fence) == (EPOCH + 1, False)


def test_a_producer_that_says_its_epoch_gets_the_next_and_if_it_asks_again_the_same():
    raised, effects = stored(txn(), init((PID, EPOCH)))
    assert reply(effects) == ProducerResult(E.NONE, PID, EPOCH + 1)
    again, effects = stored(raised, init((PID, EPOCH)))
    assert reply(effects) == ProducerResult(E.NONE, PID, EPOCH + 1)
    _, effects = stored(again, init((PID, EPOCH)))
    assert reply(effects) == ProducerResult(E.NONE, PID, EPOCH + 1)


@pytest.mark.parametrize("known", [(PID, EPOCH - 1), (PID, EPOCH + 1), (PID + 1, EPOCH)])
def test_one_that_says_another_is_fenced(known):
    assert told(txn(), init(known)) == ProducerResult(E.PRODUCER_FENCED)


def test_one_whose_epoch_a_newer_producer_has_raised_is_fenced():
    raised, _ = stored(txn(), init())
    assert told(raised, init((PID, EPOCH))) == ProducerResult(E.PRODUCER_FENCED)


LAST = 32_766


@pytest.mark.parametrize("known", [None, (PID, LAST)])
def test_after_the_last_epoch_comes_a_new_producer_id(known):
    made, effects = stored(replace(txn(), producer_epoch=LAST), init(known, 9))
    assert reply(effects) == ProducerResult(E.NONE, 9, 0)
    assert (made.last_producer_id, made.last_producer_epoch) == (PID, -1 if known is None else LAST)


def test_whoever_exhausted_its_id_and_did_not_hear_of_the_new_one_is_given_it_again():
    made, _ = stored(replace(txn(), producer_epoch=LAST), init((PID, LAST), 9))
    _, effects = stored(made, init((PID, LAST)))
    assert reply(effects) == ProducerResult(E.NONE, 9, 0)


@pytest.mark.parametrize("known", [(PID, LAST - 1), (PID + 100, LAST)])
def test_one_that_has_not_exhausted_it_or_never_had_it_is_fenced(known):
    made, _ = stored(replace(txn(), producer_epoch=LAST), init((PID, LAST), 9))
    assert told(made, init(known)) == ProducerResult(E.PRODUCER_FENCED)
    assert told(replace(made, last_producer_epoch=known[1]), init((PID + 100, known[1]))) == ProducerResult(
        E.PRODUCER_FENCED
    )


def test_one_that_said_no_epoch_then_is_not():
    made, _ = stored(replace(txn(), producer_epoch=LAST), init(None, 9))
    assert told(made, init((PID, LAST))) == ProducerResult(E.PRODUCER_FENCED)


def test_without_an_id_to_give_the_producer_is_to_come_again():
    assert told(replace(txn(), producer_epoch=LAST), init()) == ProducerResult(E.CONCURRENT_TRANSACTIONS)


def test_the_last_epoch_leaves_one_to_fence_with():
    open_at_last = replace(OPEN, producer_epoch=LAST)
    decided, _ = stored(open_at_last, init())
    assert decided.producer_epoch == LAST + 1 == 2**15 - 1
    ended, _ = stored(decided, MarkersWritten(PID, LAST + 1))
    _, effects = stored(ended, init(None, 9))
    assert reply(effects) == ProducerResult(E.NONE, 9, 0)


def test_an_epoch_that_was_fenced_is_not_given_again():
    raised, _ = stored(txn(), init((PID, EPOCH)))
    begun, _ = stored(raised, AddPartitions(PID, EPOCH + 1, (A,)))
    decided, _ = stored(begun, init())
    ended, _ = stored(decided, MarkersWritten(PID, EPOCH + 2))
    for known in ((PID, EPOCH), (PID, EPOCH + 1)):
        assert told(ended, init(known)) == ProducerResult(E.PRODUCER_FENCED)


def test_a_new_producer_id_is_fetched_for_whoever_may_need_one():
    assert needs_producer_id(Transaction("t"))
    assert not needs_producer_id(Transaction("t", pending=S.EMPTY))
    for ready in READY:
        assert needs_producer_id(replace(ready, producer_epoch=LAST))
        assert not needs_producer_id(replace(ready, producer_epoch=LAST - 1))
    for busy in (OPEN, *DECIDED):
        assert not needs_producer_id(replace(busy, producer_epoch=LAST))


# --- AddPartitionsToTxn, EndTxn ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", EVERY, **NAMED)
@pytest.mark.parametrize(
    ("who", "code"),
    [((PID + 1, EPOCH), E.INVALID_PRODUCER_ID_MAPPING), ((PID, EPOCH - 1), E.PRODUCER_FENCED)],
)
def test_nobody_else_speaks_for_the_id_whatever_is_on_its_way(before, who, code):
    for transaction in (before, replace(before, pending=before.pending or S.EMPTY)):
        assert told(transaction, AddPartitions(*who, (A,), token=1)) == code
        assert told(transaction, EndTransaction(*who, True, token=1)) == code


@pytest.mark.parametrize("before", READY, **NAMED)
def test_the_first_partition_begins_a_transaction(before):
    begun, effects = stored(before, AddPartitions(PID, EPOCH, (A, B), token=1))
    assert reply(effects) == E.NONE
    assert (begun.state, list(begun.partitions), begun.started_ms) == (S.ONGOING, [A, B], NOW)
    assert SetTimer(TIMEOUT_TIMER, TIMEOUT_MS, TimedOut()) in effects


def test_more_partitions_do_not_begin_it_anew():
    begun, effects = stored(OPEN, AddPartitions(PID, EPOCH, (B,), token=1))
    assert (list(begun.partitions), begun.started_ms) == ([A, B], OPEN.started_ms)
    assert SetTimer(TIMEOUT_TIMER, TIMEOUT_MS - 10, TimedOut()) in effects


def test_a_clock_that_is_put_back_gives_a_transaction_no_more_time_than_it_asked_for():
    day_ms = 86_400_000
    _, effects = stored(OPEN, AddPartitions(PID, EPOCH, (B,)), now_ms=NOW - day_ms)
    assert SetTimer(TIMEOUT_TIMER, TIMEOUT_MS, TimedOut()) in effects
    assert OPEN.time_left_ms(NOW - day_ms) == TIMEOUT_MS
    assert OPEN.time_left_ms(NOW + day_ms) == 0


def test_what_is_in_it_already_is_not_written_again():
    assert told(OPEN, AddPartitions(PID, EPOCH, (A,), token=1)) == E.NONE


def test_a_partition_more_than_a_transaction_may_have_is_refused():
    full, effects = stored(txn(S.ONGOING, A, B), AddPartitions(PID, EPOCH, (C,), token=1))
    assert reply(effects) == E.NONE
    assert told(full, AddPartitions(PID, EPOCH, (D,), token=1)) == E.POLICY_VIOLATION
    assert told(full, AddPartitions(PID, EPOCH, (A, C), token=1)) == E.NONE


def test_what_the_instance_has_no_room_for_is_refused_after_who_may_not_ask_and_never_to_a_group():
    assert reply(stored(OPEN, AddPartitions(PID, EPOCH, (A, B), room=1, token=1))[1]) == E.NONE
    assert told(OPEN, AddPartitions(PID, EPOCH, (B, C), room=1, token=1)) == E.POLICY_VIOLATION
    assert told(OPEN, AddPartitions(PID, EPOCH - 1, (B, C), room=0, token=1)) == E.PRODUCER_FENCED
    assert told(OPEN, AddPartitions(PID, EPOCH, (A,), room=-5, token=1)) == E.NONE, "it is counted already"
    of_group = AddPartitions(PID, EPOCH, (B,), is_of_group=True, room=0, token=1)
    assert reply(stored(OPEN, of_group)[1]) == E.NONE


@pytest.mark.parametrize("before", READY, **NAMED)
@pytest.mark.parametrize("is_of_group", [False, True])
def test_one_too_many_does_not_begin_whoever_asks_and_after_who_may_not(before, is_of_group):
    ask = AddPartitions(PID, EPOCH, (A,), is_of_group, may_begin=False, token=1)
    assert told(before, ask) == E.POLICY_VIOLATION
    assert told(before, replace(ask, producer_epoch=EPOCH - 1)) == E.PRODUCER_FENCED


def test_what_has_begun_goes_on_though_no_other_may_begin():
    assert told(OPEN, AddPartitions(PID, EPOCH, (A,), may_begin=False, token=1)) == E.NONE
    assert reply(stored(OPEN, AddPartitions(PID, EPOCH, (B,), may_begin=False, token=1))[1]) == E.NONE


@pytest.mark.parametrize("before", EVERY, **NAMED)
def test_one_is_open_from_its_beginning_until_its_markers_are_written(before):
    assert before.is_open == (before not in READY)
    for pending in (S.EMPTY, S.ONGOING, S.PREPARE_ABORT, S.DEAD):
        is_open = before not in READY or pending in (S.ONGOING, S.PREPARE_ABORT)
        assert replace(before, pending=pending).is_open == is_open


@pytest.mark.parametrize("before", DECIDED, **NAMED)
def test_nothing_is_added_to_one_that_is_decided(before):
    assert told(before, AddPartitions(PID, EPOCH, (B,), token=1)) == E.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize(("is_commit", "state"), [(True, S.PREPARE_COMMIT), (False, S.PREPARE_ABORT)])
def test_an_end_is_answered_when_it_is_stored_and_then_markers_are_written(is_commit, state):
    decided, effects = stored(OPEN, EndTransaction(PID, EPOCH, is_commit, token=1))
    assert reply(effects) == E.NONE
    assert (decided.state, list(decided.partitions)) == (state, [A])
    assert effects[-1] == Begin(WriteMarkers(decided))


ENDS = {
    (S.EMPTY, True): E.INVALID_TXN_STATE,
    (S.EMPTY, False): E.INVALID_TXN_STATE,
    (S.PREPARE_COMMIT, True): E.CONCURRENT_TRANSACTIONS,
    (S.PREPARE_COMMIT, False): E.CONCURRENT_TRANSACTIONS,  # as in Kafka: what is on its way is looked at first
    (S.PREPARE_ABORT, True): E.CONCURRENT_TRANSACTIONS,
    (S.PREPARE_ABORT, False): E.CONCURRENT_TRANSACTIONS,
    (S.COMPLETE_COMMIT, True): E.NONE,
    (S.COMPLETE_COMMIT, False): E.INVALID_TXN_STATE,
    (S.COMPLETE_ABORT, True): E.INVALID_TXN_STATE,
    (S.COMPLETE_ABORT, False): E.NONE,
}


@pytest.mark.parametrize(("state", "is_commit"), ENDS)
def test_an_end_that_comes_again_is_told_what_has_become_of_it(state, is_commit):
    assert told(txn(state), EndTransaction(PID, EPOCH, is_commit, token=1)) == ENDS[state, is_commit]


def test_what_the_log_does_not_take_has_not_happened():
    for ask in (AddPartitions(PID, EPOCH, (B,), token=1), EndTransaction(PID, EPOCH, True, token=1)):
        unchanged, effects = stored(OPEN, ask, E.COORDINATOR_NOT_AVAILABLE)
        assert reply(effects) == E.COORDINATOR_NOT_AVAILABLE
        assert unchanged == OPEN


# --- EndTxn that raises the epoch -------------------------------------------------------------------------------------

RAISES = txn(S.ONGOING, A, version=RAISING)


def raising(*, is_commit=True, epoch=EPOCH, producer_id=PID, new=None):
    return EndAndRaise(producer_id, epoch, is_commit, new, token=1)


def ended(transaction=RAISES, **more):
    """The transactional id when all markers are written, and what the producer was told."""
    decided, effects = stored(transaction, raising(**more))
    assert effects[-1] == Begin(WriteMarkers(decided))
    complete, _ = stored(decided, MarkersWritten(decided.producer_id, decided.producer_epoch))
    return complete, reply(effects)


@pytest.mark.parametrize(("is_commit", "state"), [(True, S.PREPARE_COMMIT), (False, S.PREPARE_ABORT)])
def test_an_end_that_raises_the_epoch_writes_its_markers_with_the_one_that_the_producer_goes_on_with(is_commit, state):
    decided, effects = stored(RAISES, raising(is_commit=is_commit))
    assert reply(effects) == ProducerResult(E.NONE, PID, EPOCH + 1)
    assert (decided.state, decided.producer_epoch, list(decided.partitions)) == (state, EPOCH + 1, [A])
    complete, _ = stored(decided, MarkersWritten(PID, EPOCH + 1))
    assert (complete.producer_id, complete.producer_epoch, complete.partitions) == (PID, EPOCH + 1, {})
    assert told(complete, AddPartitions(PID, EPOCH, (A,), token=1)) == E.PRODUCER_FENCED
    begun, _ = stored(complete, AddPartitions(PID, EPOCH + 1, (A,), version=RAISING, token=1))
    assert (begun.state, begun.version) == (S.ONGOING, RAISING)


RAISED_AGAIN = {
    (S.PREPARE_COMMIT, True): E.CONCURRENT_TRANSACTIONS,
    (S.PREPARE_COMMIT, False): E.CONCURRENT_TRANSACTIONS,
    (S.PREPARE_ABORT, False): E.CONCURRENT_TRANSACTIONS,
    (S.COMPLETE_COMMIT, True): E.NONE,
    (S.COMPLETE_COMMIT, False): E.INVALID_TXN_STATE,
    (S.COMPLETE_ABORT, True): E.INVALID_TXN_STATE,
    (S.COMPLETE_ABORT, False): E.NONE,
    (S.ONGOING, True): E.PRODUCER_FENCED,  # the next one has begun
    (S.ONGOING, False): E.PRODUCER_FENCED,
}


@pytest.mark.parametrize(("state", "is_commit"), RAISED_AGAIN)
def test_whoever_did_not_hear_the_new_epoch_is_told_it_again_unless_it_was_used_since(state, is_commit):
    error = RAISED_AGAIN[state, is_commit]
    result = ProducerResult(error, PID, EPOCH + 1) if error == E.NONE else ProducerResult(error)
    before = replace(txn(state, version=RAISING), producer_epoch=EPOCH + 1)
    assert told(before, raising(is_commit=is_commit)) == result


def test_an_end_of_an_older_producer_is_never_taken_for_one_that_comes_again():
    for state in (S.COMPLETE_COMMIT, S.EMPTY):
        assert told(replace(txn(state), producer_epoch=EPOCH + 1), raising()) == ProducerResult(E.PRODUCER_FENCED)
    assert told(RAISES, raising(epoch=EPOCH + 1)) == ProducerResult(E.PRODUCER_FENCED)
    assert told(RAISES, raising(producer_id=PID + 1)) == ProducerResult(E.INVALID_PRODUCER_ID_MAPPING)


@pytest.mark.parametrize("before", READY, **NAMED)
def test_what_was_never_begun_is_aborted_with_another_epoch_and_cannot_be_committed(before):
    assert told(before, raising()) == ProducerResult(E.INVALID_TXN_STATE)
    aborted, heard = ended(before, is_commit=False)
    assert heard == ProducerResult(E.NONE, PID, EPOCH + 1)
    assert (aborted.state, aborted.producer_epoch) == (S.COMPLETE_ABORT, EPOCH + 1)


def test_a_producer_whose_transaction_has_timed_out_goes_on_when_it_aborts_and_is_fenced_when_another_has_begun():
    decided, _ = stored(RAISES, TimedOut())
    timed_out, _ = stored(decided, MarkersWritten(PID, EPOCH + 1))
    assert told(timed_out, raising(is_commit=False)) == ProducerResult(E.NONE, PID, EPOCH + 1)
    assert told(timed_out, raising()) == ProducerResult(E.INVALID_TXN_STATE)
    _, effects = stored(timed_out, init((PID, EPOCH)))
    assert reply(effects) == ProducerResult(E.NONE, PID, EPOCH + 1), "it may ask in this way as well"
    another, effects = stored(timed_out, init())
    assert reply(effects) == ProducerResult(E.NONE, PID, EPOCH + 2)
    assert told(another, raising(is_commit=False)) == ProducerResult(E.PRODUCER_FENCED)


def test_the_last_epoch_of_a_producer_id_ends_with_another_id():
    last = replace(RAISES, producer_epoch=LAST_EPOCH)
    assert needs_producer_id_to_go_on(last)
    assert told(last, raising(epoch=LAST_EPOCH)) == ProducerResult(E.CONCURRENT_TRANSACTIONS)
    decided, effects = stored(last, raising(epoch=LAST_EPOCH, new=9))
    assert reply(effects) == ProducerResult(E.NONE, 9, 0)
    assert (decided.producer_id, decided.producer_epoch) == (PID, LAST_EPOCH + 1), "markers are the old producer's"
    assert told(decided, raising(epoch=LAST_EPOCH)) == ProducerResult(E.CONCURRENT_TRANSACTIONS)
    for waiting in (decided, loaded("t", durable_value(decided))):
        complete, _ = stored(waiting, MarkersWritten(PID, LAST_EPOCH + 1))
        assert (complete.producer_id, complete.producer_epoch, complete.next_producer_id) == (9, 0, -1)
        assert told(complete, raising(epoch=LAST_EPOCH)) == ProducerResult(E.NONE, 9, 0)
        assert told(loaded("t", durable_value(complete)), raising(epoch=LAST_EPOCH)) == ProducerResult(E.NONE, 9, 0)
        assert told(complete, raising(epoch=LAST_EPOCH - 1)) == ProducerResult(E.INVALID_PRODUCER_ID_MAPPING)


def test_whoever_goes_on_with_another_id_comes_again_until_the_markers_of_the_old_one_are_written():
    """It has heard of it with its end, and its next batch may be there before the last marker."""
    last = replace(RAISES, producer_epoch=LAST_EPOCH)
    decided, _ = stored(last, raising(epoch=LAST_EPOCH, new=9))
    for waiting in (decided, loaded("t", durable_value(decided))):
        assert told(waiting, AddPartitions(9, 0, (A,), version=RAISING, token=1)) == E.CONCURRENT_TRANSACTIONS
        assert told(waiting, raising(producer_id=9, epoch=0)) == ProducerResult(E.CONCURRENT_TRANSACTIONS)
        assert verified(waiting, 9, 0, [A]) == {A: E.CONCURRENT_TRANSACTIONS}
        for who in ((9, 1), (10, 0)):
            assert told(waiting, AddPartitions(*who, (A,), token=1)) == E.INVALID_PRODUCER_ID_MAPPING
    complete, _ = stored(decided, MarkersWritten(PID, LAST_EPOCH + 1))
    begun, effects = stored(complete, AddPartitions(9, 0, (A,), version=RAISING, token=1))
    assert (reply(effects), begun.state) == (E.NONE, S.ONGOING)


def test_an_epoch_that_is_kept_for_fencing_is_told_to_nobody():
    decided, _ = stored(replace(RAISES, producer_epoch=LAST_EPOCH), TimedOut())
    timed_out, _ = stored(decided, MarkersWritten(PID, LAST_EPOCH + 1))
    assert told(timed_out, raising(is_commit=False, epoch=LAST_EPOCH)) == ProducerResult(E.PRODUCER_FENCED)
    assert told(timed_out, init((PID, LAST_EPOCH), new=9)) == ProducerResult(E.PRODUCER_FENCED)


def test_an_older_client_ends_such_a_transaction_with_the_epoch_that_it_has():
    decided, effects = stored(RAISES, EndTransaction(PID, EPOCH, True, token=1))
    assert reply(effects) == E.NONE
    assert (decided.producer_epoch, decided.version) == (EPOCH, 0)


def test_an_end_that_the_log_refuses_has_raised_nothing():
    unchanged, effects = stored(RAISES, raising(), E.COORDINATOR_NOT_AVAILABLE)
    assert reply(effects) == ProducerResult(E.COORDINATOR_NOT_AVAILABLE)
    assert unchanged == RAISES


@pytest.mark.parametrize("before", [RAISES, ended()[0], stored(RAISES, raising())[0]], **NAMED)
def test_a_successor_loads_such_a_transaction_too(before):
    assert replace(loaded("t", durable_value(before)), last_producer_epoch=before.last_producer_epoch) == before


# --- time, markers ----------------------------------------------------------------------------------------------------


def test_a_transaction_that_is_open_for_too_long_is_aborted_and_its_producer_fenced():
    decided, effects = stored(OPEN, TimedOut())
    assert reply(effects) is None
    assert (decided.state, decided.producer_epoch) == (S.PREPARE_ABORT, EPOCH + 1)
    assert told(replace(decided, pending=None, state=S.COMPLETE_ABORT), EndTransaction(PID, EPOCH, True)) == (
        E.PRODUCER_FENCED
    )


def test_an_abort_that_the_log_refused_is_tried_again_after_a_pause():
    late = OPEN.started_ms + OPEN.timeout_ms
    failed, effects = stored(OPEN, TimedOut(), E.COORDINATOR_NOT_AVAILABLE, now_ms=late)
    assert effects[-1] == SetTimer(TIMEOUT_TIMER, RETRY_MS, TimedOut())
    decided, _ = stored(failed, TimedOut())
    assert decided.producer_epoch == EPOCH + 1


@pytest.mark.parametrize("before", [*READY, *DECIDED], **NAMED)
def test_a_time_out_that_comes_late_changes_nothing(before):
    assert after(before, TimedOut()) == (before, [])


@pytest.mark.parametrize("before", DECIDED, **NAMED)
def test_with_its_last_marker_it_is_complete_and_keeps_no_partitions(before):
    complete, effects = stored(before, MarkersWritten(PID, EPOCH))
    assert (complete.state, complete.partitions, complete.pending) == (before.pending, {}, None)
    assert reply(effects) is None


@pytest.mark.parametrize("before", DECIDED, **NAMED)
def test_a_completion_that_the_log_refused_is_written_again_without_new_markers(before):
    waiting, effects = stored(before, MarkersWritten(PID, EPOCH), E.COORDINATOR_NOT_AVAILABLE)
    assert waiting == before
    (timer,) = effects
    assert timer == SetTimer(RETRY_TIMER, RETRY_MS, MarkersWritten(PID, EPOCH))


def test_markers_of_an_epoch_before_complete_nothing():
    assert after(DECIDED[0], MarkersWritten(PID, EPOCH - 1)) == (DECIDED[0], [])


@pytest.mark.parametrize("before", EVERY, **NAMED)
def test_a_successor_writes_the_markers_of_what_was_decided(before):
    wanted = [Begin(WriteMarkers(before))] if before.state in PREPARED else []
    assert after(before, Resume()) == (before, wanted)


@pytest.mark.parametrize("before", READY, **NAMED)
def test_an_id_that_nobody_has_used_for_long_is_removed(before):
    now_ms = before.updated_ms + SETTINGS.id_expiration_ms
    dying, effects = after(before, Expired(), now_ms)
    assert store(effects).value is None
    assert told(dying, init()) == ProducerResult(E.CONCURRENT_TRANSACTIONS)
    gone, _ = after(dying, store(effects).then, now_ms)
    assert gone.is_blank()


@pytest.mark.parametrize("before", [OPEN, *DECIDED], **NAMED)
def test_an_id_with_an_open_transaction_is_not(before):
    assert after(before, Expired(), NOW + 10**9) == (before, [])


def test_nor_one_that_was_used_meanwhile():
    same, effects = after(txn(), Expired())
    assert same == txn()
    assert not [effect for effect in effects if isinstance(effect, Store)]


# --- verification, the log --------------------------------------------------------------------------------------------


def test_a_partition_is_verified_by_the_open_transaction_alone():
    assert verified(OPEN, PID, EPOCH, [A, B]) == {A: E.NONE, B: E.TRANSACTION_ABORTABLE}
    assert verified(replace(OPEN, pending=S.PREPARE_COMMIT), PID, EPOCH, [A]) == {A: E.NONE}
    for decided in DECIDED:
        assert verified(decided, PID, EPOCH, [A]) == {A: E.CONCURRENT_TRANSACTIONS}
    for ready in READY:
        assert verified(ready, PID, EPOCH, [A]) == {A: E.TRANSACTION_ABORTABLE}
    assert verified(OPEN, PID + 1, EPOCH, [A]) == {A: E.INVALID_PRODUCER_ID_MAPPING}
    assert verified(OPEN, PID, EPOCH - 1, [A]) == {A: E.PRODUCER_FENCED}


@pytest.mark.parametrize("before", EVERY, **NAMED)
def test_a_successor_loads_what_was_served(before):
    assert loaded("t", durable_value(before)) == before


def test_the_same_word_of_the_log_twice_changes_nothing():
    proposed, effects = after(OPEN, AddPartitions(PID, EPOCH, (B,), token=1))
    begun, _ = after(proposed, store(effects).then)
    assert after(begun, store(effects).then) == (begun, [])


def test_no_state_is_left_without_saying_where_to():
    assert set(FOLLOWS) == set(S)
    assert isinstance(Stored(OPEN).error, ErrorCode)
