"""Long work in steps: when it pauses, what is asked for in a pause, and what comes back into it."""

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.records import compression
from dataplane.records.batch import read_records
from dataplane.records.header import CorruptBatchError
from dataplane.records.legacy import Message, write_message_set
from dataplane.records.preparation import NO_RULES, prepare_messages
from dataplane.records.steps import STEP_US, Pace, each, packed, resumed, run_through, unpacked


def paused(steps):
    """What it asks for in its pauses, one after the other, each answered with None; then its result."""
    asked = []
    try:
        while True:
            asked.append(next(steps))
    except StopIteration as stop:
        return asked, stop.value


# --- runners ----------------------------------------------------------------------------------------------------------


def fails():
    raise LookupError("gone")


def sums():
    """Adds what its pauses bring; a call that fails counts as much as its words are long."""
    total = yield None
    assert total is None
    total = 0
    for work in (lambda: 1, fails, lambda: 3):
        try:
            total += yield work
        except LookupError as error:
            total += 100 * len(str(error))
    return total


def test_a_runner_makes_the_calls_and_gives_back_what_came_of_them():
    assert run_through(sums()) == 404


def test_steps_that_were_begun_go_on_as_if_nobody_had_looked():
    steps = sums()
    assert run_through(resumed(steps, next(steps))) == 404


def test_steps_that_nobody_goes_on_with_are_closed():
    steps = sums()
    again = resumed(steps, next(steps))
    next(again)
    again.close()
    assert steps.gi_frame is None


# --- pauses -----------------------------------------------------------------------------------------------------------


def test_a_pause_is_due_whenever_a_step_is_full():
    pace = Pace()
    assert [pace.over(STEP_US // 2) for _ in range(5)] == [False, True, False, True, False]
    assert [Pace().over(cost) for cost in (STEP_US - 1, STEP_US, STEP_US + 1)] == [False, True, True]


def test_each_item_is_made_in_its_order_with_pauses_between_them():
    assert paused(each([1, 2, 3, 4], str, STEP_US // 2)) == ([None, None], ["1", "2", "3", "4"])
    assert paused(each([], str, STEP_US)) == ([], [])


def test_lists_that_share_a_pace_share_their_steps():
    pace = Pace()
    assert paused(each([1], str, STEP_US - 1, pace)) == ([], ["1"])
    assert paused(each([2], str, 1, pace)) == ([None], ["2"])


def test_an_item_that_cannot_be_made_ends_it():
    with pytest.raises(ZeroDivisionError):
        run_through(each([1, 0], lambda item: 1 // item, 1))


# --- codecs -----------------------------------------------------------------------------------------------------------

GZIP = 1
SMALL, LARGE = bytes(1_000), bytes(300_000)


def compressed(data):
    return compression.compress(GZIP, data)


def test_what_is_not_compressed_or_small_is_unpacked_at_once():
    assert paused(unpacked(compression.NONE, SMALL, 10)) == ([], SMALL)
    assert paused(unpacked(GZIP, compressed(SMALL), 10_000)) == ([], SMALL)


def test_what_is_large_unpacked_is_a_call():
    (call,), _ = paused(unpacked(GZIP, compressed(LARGE), 10**6))
    assert call() == LARGE
    assert run_through(unpacked(GZIP, compressed(LARGE), 10**6)) == LARGE


@pytest.mark.parametrize("data", [SMALL, LARGE])
def test_more_than_the_limit_is_an_invalid_record_and_what_is_damaged_a_corrupt_one(data):
    for broken, limit, code in (
        (compressed(data), len(data) - 1, ErrorCode.INVALID_RECORD),
        (compressed(data)[:-9], 10**6, ErrorCode.CORRUPT_MESSAGE),
    ):
        with pytest.raises(CorruptBatchError) as caught:
            run_through(unpacked(GZIP, broken, limit))
        assert (caught.value.code, bool(str(caught.value))) == (code, True)
        assert str(caught.value) != "None"


def test_a_little_is_packed_at_once_and_much_is_a_call():
    assert paused(packed(bytes.upper, b"a")) == ([], b"A")
    (call,), _ = paused(packed(bytes.upper, b"a" * 10**6))
    assert call() == b"A" * 10**6


# --- old formats ------------------------------------------------------------------------------------------------------


def prepared(*values, codec=compression.NONE):
    """Steps that make a batch of messages of format 1."""
    messages = [Message(number, 1, 0, 5, None, value) for number, value in enumerate(values)]
    return prepare_messages(memoryview(write_message_set(messages, codec)), NO_RULES, 5, 10**7)


def made_of(batch):
    return [record.value for record in read_records(bytes(batch))]


def with_calls(steps):
    """How many calls it asked for, and other pauses it made; its result."""
    calls = pauses = 0
    answer = None
    try:
        while True:
            work = steps.send(answer)
            calls, pauses = calls + (work is not None), pauses + (work is None)
            answer = work and work()
    except StopIteration as stop:
        return calls, pauses, stop.value


def test_a_large_message_of_an_old_format_is_checked_elsewhere_and_is_a_step():
    calls, pauses, batch = with_calls(prepared(b"small", LARGE, b"small"))
    assert (calls, pauses, made_of(batch)) == (1, 1, [b"small", LARGE, b"small"])


def test_so_much_of_them_is_a_step_however_few_they_are():
    some = [bytes([n]) * 60_000 for n in range(10)]
    calls, pauses, batch = with_calls(prepared(*some))
    assert (calls, made_of(batch)) == (0, some)
    assert pauses == 5


def test_a_large_one_in_a_compressed_one_is_no_exception():
    calls, _, batch = with_calls(prepared(LARGE, b"small", codec=GZIP))
    assert calls >= 3, "to unpack, to check and to pack again"
    assert made_of(batch) == [LARGE, b"small"]


def test_a_large_one_that_is_damaged_is_refused_from_where_it_is_checked():
    damaged = bytearray(write_message_set([Message(0, 1, 0, 5, None, LARGE)], compression.NONE))
    damaged[-1] ^= 1
    with pytest.raises(CorruptBatchError, match="CRC"):
        run_through(prepare_messages(memoryview(damaged), NO_RULES, 5, 10**7))
