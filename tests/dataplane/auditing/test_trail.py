"""Of what clients cause at will few records are made, and how many were left out is told."""

from hypothesis import given
from hypothesis import strategies as st

from dataplane.auditing.trail import AT_ONCE, MOST_KINDS, MOST_WAITING, PER_S, TOGETHER_S, Trail
from quota.contracts.audit import AuditKind, AuditRecord


def record(number=0, **members):
    return AuditRecord(number, 1, AuditKind.CONNECTION, "accepted", "10.0.0.7", "default", **members)


def denial(resource="TOPIC:orders", principal="User:bob"):
    return record(principal=principal, resource=resource, api="PRODUCE", operation="WRITE")


def add(trail, one, now):
    trail.add_denial((one.principal, one.resource), lambda: one, now)


def test_records_are_written_in_order():
    trail = Trail(0.0)
    for number in range(5):
        trail.add(record(number), 0.0)
    assert [one.time_ms for one in trail.take(3)] == [0, 1, 2]
    assert [one.time_ms for one in trail.take(3)] == [3, 4]
    assert not trail.waits


def test_a_flood_has_its_tokens_and_the_next_record_says_how_many_were_left_out():
    trail = Trail(0.0)
    for number in range(1_000):
        trail.add(record(number), 0.0)
    written = trail.take(1_000)
    assert AT_ONCE <= len(written) <= AT_ONCE + PER_S
    trail.add(record(7), 10.0)
    (last,) = trail.take(10)
    assert (last.time_ms, last.left_out) == (7, 1_000 - len(written))


def test_no_more_wait_than_there_is_room_for():
    trail = Trail(0.0)
    for second in range(1_000):
        trail.add(record(second), float(second))
    assert len(trail.take(10_000)) == MOST_WAITING


def test_denials_that_are_alike_are_told_at_once_and_then_by_the_minute():
    trail = Trail(0.0)
    for second in range(30):
        add(trail, denial(), float(second))
    assert [one.count for one in trail.take(10)] == [1]
    trail.turn(TOGETHER_S)
    assert [one.count for one in trail.take(10)] == [29]
    trail.turn(2 * TOGETHER_S + 1)
    assert trail.is_idle


def test_denials_that_are_not_alike_are_records_of_their_own():
    trail = Trail(0.0)
    for one in (denial(), denial("TOPIC:other"), denial(principal="User:eve")):
        add(trail, one, 0.0)
    assert len(trail.take(10)) == 3


def test_very_many_kinds_of_denial_are_not_remembered_and_few_are_made_into_records():
    trail, made = Trail(0.0), []

    def make():
        made.append(1)
        return denial()

    for number in range(20_000):
        trail.add_denial(number, make, 0.0)
    assert len(made) <= AT_ONCE + PER_S
    for second in range(1, 500):
        trail.take(100)
        for number in range(100):
            trail.add_denial((second, number), make, second / 10)
    assert len(trail._alike) == MOST_KINDS


def test_what_could_not_be_written_comes_before_what_came_since():
    trail = Trail(0.0)
    for number in range(4):
        trail.add(record(number), 0.0)
    taken = trail.take(2)
    trail.put_back(taken)
    assert [one.time_ms for one in trail.take(10)] == [0, 1, 2, 3]


moments = st.lists(st.tuples(st.floats(0, 5), st.sampled_from("adtp"), st.integers(0, 9)), max_size=200)


@given(moments)
def test_every_event_is_written_or_counted(steps):
    trail, now, given_in, told = Trail(0.0), 0.0, 0, 0
    taken = []
    for pause, what, number in steps:
        now += pause
        if what == "a":
            trail.add(record(number), now)
            given_in += 1
        elif what == "d":
            add(trail, denial(f"TOPIC:{number}"), now)
            given_in += 1
        elif what == "t":
            taken = trail.take(number)
            told += sum(one.count + one.left_out for one in taken)
        elif taken:
            trail.put_back(taken)
            told -= sum(one.count + one.left_out for one in taken)
            taken = []
    trail.turn(now + TOGETHER_S + 1)
    told += sum(one.count + one.left_out for one in trail.take(MOST_WAITING))
    trail.add(record(), now + 1_000)
    told += sum(one.count + one.left_out for one in trail.take(MOST_WAITING)) - 1
    assert told == given_in
