"""Records of the meter: when they are due, under which hour, and that nothing is lost while nobody takes them."""

from collections import Counter
from itertools import pairwise
from uuid import UUID

import pytest

from dataplane.cluster.paths import topic_id_text
from tests.dataplane.metering.support import EVENTS, ORDERS, SECONDS_TO_FIRST_EDGE, World, hourly, totals


def hour_after(hours):
    from datetime import UTC, datetime, timedelta

    from tests.support.virtual_loop import WALL_CLOCK_START_MS

    start = datetime.fromtimestamp(WALL_CLOCK_START_MS / 1000, UTC).replace(minute=0, second=0, microsecond=0)
    return (start + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_changed_counters_are_told_every_ten_seconds_and_unchanged_ones_are_not():
    life = World().boot()
    orders, _ = life.meter.topic(ORDERS), life.meter.topic(EVENTS)
    orders.produced(100)
    life.run(5)
    assert life.sink.records == []
    orders.consumed(30)
    life.run(6)
    assert [(r.topic, r.produced_bytes, r.consumed_bytes) for r in life.sink.records] == [("orders", 100, 30)]
    life.run(60)
    assert len(life.sink.records) == 1
    orders.produced(1)
    life.run(11)
    assert [r.produced_bytes for r in life.sink.records] == [100, 101]
    record = life.sink.records[0]
    assert (record.broker, record.boot, record.instance) == (1, f"{1:016x}", "ins-aaaabbbb")
    assert record.hour == hour_after(0)


def test_what_only_stores_is_told_every_ten_minutes():
    life = World().boot()
    life.meter.topic(ORDERS).stored(1_000)
    life.run(1_300)
    records = life.sink.of("orders")
    assert len(records) == 2
    assert records[0].stored_byte_seconds == pytest.approx(600_000, rel=0.02)
    assert records[1].stored_byte_seconds == pytest.approx(1_200_000, rel=0.02)


def test_storage_is_the_integral_over_its_changes():
    life = World().boot()
    orders = life.meter.topic(ORDERS)
    orders.stored(100)
    life.run(10)
    orders.stored(+200)
    life.run(5)
    orders.stored(-300)
    life.run(600)
    orders.produced(1)
    life.run(11)
    assert life.sink.records[-1].stored_byte_seconds == 100 * 10 + 300 * 5


TEN_PETABYTES = 10**16


def test_byte_seconds_of_very_much_data_are_counted_beyond_what_one_word_holds():
    life = World().boot()
    orders = life.meter.topic(ORDERS)
    orders.stored(TEN_PETABYTES)
    orders.produced(7)
    life.run(5_400)
    orders.stored(-TEN_PETABYTES)
    orders.produced(8)
    life.run(15)
    assert 5_400 * TEN_PETABYTES > 5 * 2**63
    assert totals(life.sink.records)["orders"] == (15, 0, 5_400 * TEN_PETABYTES)
    assert max(r.stored_byte_seconds for r in life.sink.records) < 2**63
    by_hour = hourly(life.sink.records, "orders")
    assert by_hour[hour_after(0)][2] == SECONDS_TO_FIRST_EDGE * TEN_PETABYTES


def test_topics_of_the_cluster_are_not_metered():
    life = World().boot()
    assert life.meter.topic("__usage") is None
    assert life.meter.topic("__consumer_offsets") is None


def test_at_the_edge_of_an_hour_everything_is_told_under_the_hour_that_ends():
    life = World().boot()
    orders, events = life.meter.topic(ORDERS), life.meter.topic(EVENTS)
    events.stored(10)
    life.run(SECONDS_TO_FIRST_EDGE - 3)
    orders.produced(77)
    life.run(2.9)
    assert life.sink.of("orders") == []
    life.run(0.2)
    (record,) = life.sink.of("orders")
    assert (record.hour, record.produced_bytes) == (hour_after(0), 77)
    last = life.sink.of("events")[-1]
    assert (last.hour, last.stored_byte_seconds) == (hour_after(0), SECONDS_TO_FIRST_EDGE * 10)
    orders.produced(3)
    life.run(3600)
    by_hour = hourly(life.sink.records, "orders")
    assert [by_hour[hour_after(n)][0] for n in (0, 1)] == [77, 3]
    assert hourly(life.sink.records, "events")[hour_after(1)][2] == 36_000


def test_a_quiet_topic_is_closed_as_of_the_edge_although_its_turn_comes_later():
    life = World().boot()
    orders, events = life.meter.topic(ORDERS), life.meter.topic(EVENTS)
    orders.stored(10)
    events.stored(10)
    life.run(SECONDS_TO_FIRST_EDGE - 1)
    life.sink.refuses = lambda _: True
    life.run(50)
    orders.produced(5)  # closes it first
    orders.stored(990)
    life.run(50)
    life.sink.refuses = lambda _: False
    life.run(3_600)
    for topic in ("orders", "events"):
        assert hourly(life.sink.records, topic)[hour_after(0)][2] == SECONDS_TO_FIRST_EDGE * 10
    assert hourly(life.sink.records, "orders")[hour_after(0)][0] == 0
    assert hourly(life.sink.records, "orders")[hour_after(1)] == (5, 0, 10 * 49 + 1000 * (3600 - 49))
    assert hourly(life.sink.records, "events")[hour_after(1)][2] == 36_000


MANY = 3_000


@pytest.fixture
def taken(monkeypatch):
    """How many records were made at each moment; on the virtual clock a turn is one moment."""
    from collections import Counter

    from dataplane.metering.usage import TopicUsage

    made, original = Counter(), TopicUsage.take
    monkeypatch.setattr(
        TopicUsage, "take", lambda self, *a, **k: made.update([self._owner.now_ms()]) or original(self, *a, **k)
    )
    return made


def test_at_the_edge_of_an_hour_no_turn_closes_more_than_a_portion_of_the_topics_that_have_changed(taken):
    life = World().boot()
    usages = [life.meter.topic(f"aaaabbbb.t{n}") for n in range(MANY)]
    life.run(SECONDS_TO_FIRST_EDGE - 3)
    for usage in usages:
        usage.stored(10)
        usage.produced(100)
    taken.clear()
    life.run(4)
    assert max(taken.values()) <= 64
    closed = [r for r in life.sink.records if r.hour == hour_after(0)]
    assert len(closed) == MANY
    assert {(r.produced_bytes, r.stored_byte_seconds) for r in closed} == {(100, 30)}


def test_what_comes_after_the_edge_belongs_to_the_next_hour_also_where_its_topic_has_not_had_its_turn():
    life = World().boot()
    usages = [life.meter.topic(f"aaaabbbb.t{n}") for n in range(MANY)]
    life.run(SECONDS_TO_FIRST_EDGE - 3)
    for usage in usages:
        usage.produced(100)
    life.sink.refuses = lambda _: True  # nobody has a turn
    life.run(5)
    for usage in usages[::2]:
        usage.produced(1)
    for usage in usages[::3]:
        usage.consumed(2)
    life.sink.refuses = lambda _: False
    life.run(30)
    for number in range(MANY):
        by_hour = hourly(life.sink.records, f"t{number}")
        assert by_hour.pop(hour_after(0)) == (100, 0, 0)
        later = (1 if number % 2 == 0 else 0, 2 if number % 3 == 0 else 0, 0)
        assert by_hour == ({hour_after(1): later} if any(later) else {})


def test_topics_that_are_busy_at_every_moment_do_not_hold_up_the_closing_of_an_hour():
    life = World().boot()
    busy = [life.meter.topic(f"aaaabbbb.t{n}") for n in range(500)]
    quiet = life.meter.topic(EVENTS)
    quiet.stored(10)
    life.sink.answers_after_s = 2.0  # 64 records in two seconds, and 500 are due every ten
    life.run(SECONDS_TO_FIRST_EDGE - 20)
    for _ in range(80):
        for usage in busy:
            usage.produced(1)
        life.run(1)
    (record,) = [r for r in life.sink.of("events") if r.hour == hour_after(0)][-1:]
    assert record.stored_byte_seconds == 10 * SECONDS_TO_FIRST_EDGE


def test_a_topic_that_is_deleted_before_its_hour_was_closed_is_told_to_its_end():
    life = World().boot()
    others = [life.meter.topic(f"aaaabbbb.t{n}") for n in range(MANY)]
    orders = life.meter.topic(ORDERS)
    orders.stored(100)
    life.run(SECONDS_TO_FIRST_EDGE - 1)
    for usage in [*others, orders]:
        usage.produced(5)
    life.sink.refuses = lambda _: True
    life.run(1 + 10)
    life.meter.retire(ORDERS)
    orders.stored(-100)
    life.sink.refuses = lambda _: False
    life.run(60)
    by_hour = hourly(life.sink.records, "orders")
    assert by_hour == {hour_after(0): (5, 0, 100 * SECONDS_TO_FIRST_EDGE), hour_after(1): (0, 0, 1000)}


def test_hours_that_passed_while_nobody_took_records_are_all_told_later():
    life = World().boot()
    orders, events = life.meter.topic(ORDERS), life.meter.topic(EVENTS)
    events.stored(1)
    life.run(SECONDS_TO_FIRST_EDGE - 10)
    life.sink.refuses = lambda _: True
    for amount in (1, 20, 300):
        orders.produced(amount)
        life.run(3600)
    life.sink.refuses = lambda _: False
    life.run(60)
    produced = {hour: counters[0] for hour, counters in hourly(life.sink.records, "orders").items()}
    assert produced == {hour_after(0): 1, hour_after(1): 20, hour_after(2): 300}
    stored = {hour: counters[2] for hour, counters in hourly(life.sink.records, "events").items()}
    assert [stored[hour_after(n)] for n in (1, 2)] == [3600, 3600]


def test_refused_records_are_told_again_until_they_are_taken_and_do_not_hold_up_others():
    life = World().boot()
    usages = [life.meter.topic(f"aaaabbbb.t{n}") for n in range(200)]
    life.sink.refuses = lambda record: int(record.topic[1:]) < 100
    for usage in usages:
        usage.produced(1)
    life.run(20)
    assert {int(r.topic[1:]) for r in life.sink.records} == set(range(100, 200))
    life.sink.refuses = lambda _: False
    life.run(5)
    assert totals(life.sink.records) == {f"t{n}": (1, 0, 0) for n in range(200)}
    assert max(life.sink.calls) <= 64


def test_idle_topics_cost_nothing():
    life = World().boot()
    usages = [life.meter.topic(f"aaaabbbb.t{n}") for n in range(3000)]
    life.run(100)
    assert life.sink.calls == [1]  # that nothing of the hours before is to come
    looked_at = []
    original = type(usages[0]).take
    try:
        type(usages[0]).take = lambda self, *a, **k: looked_at.append(self) or original(self, *a, **k)
        usages[7].produced(1)
        life.run(100)
    finally:
        type(usages[0]).take = original
    assert looked_at == [usages[7]]


def test_a_clock_that_is_set_back_never_tells_under_an_earlier_hour():
    world = World()
    life = world.boot()
    orders = life.meter.topic(ORDERS)
    life.run(SECONDS_TO_FIRST_EDGE + 5)
    world.network.step_clock("b1", -600_000)
    orders.produced(5)
    life.run(20)
    assert [r.hour for r in life.sink.of("orders")] == [hour_after(1)]


DAY_MS = 86_400_000


def used(life, topic):
    return {hour: counters for hour, counters in hourly(life.sink.records, topic).items() if any(counters)}


def test_what_a_clock_tells_that_is_ahead_is_booked_under_the_hour_in_which_it_was_written_and_so_is_what_comes_after():
    world = World()
    life = world.boot()
    orders, events, later = (life.meter.topic(f"aaaabbbb.{name}") for name in ("orders", "events", "later"))
    events.stored(10)
    orders.produced(100)
    life.run(60)
    world.network.step_clock("b1", 30 * DAY_MS)
    life.run(5)
    orders.produced(20)
    events.consumed(3)
    later.produced(1)
    life.run(55)
    assert used(life, "orders") == {hour_after(0): (120, 0, 0)}
    world.network.step_clock("b1", -30 * DAY_MS)
    later.produced(1)
    life.run(60)
    assert used(life, "orders") == {hour_after(0): (120, 0, 0)}
    assert used(life, "later") == {hour_after(0): (2, 0, 0)}
    assert set(used(life, "events")) == {hour_after(0)}
    life.run(SECONDS_TO_FIRST_EDGE)
    orders.produced(5)
    life.run(15)
    assert used(life, "orders") == {hour_after(0): (120, 0, 0), hour_after(1): (5, 0, 0)}
    life.run(600)
    # What only stores is told every ten minutes, and at edges of the hours that it is counted under, which are far ahead now.
    stored = [used(life, "events")[hour_after(n)][2] for n in (0, 1)]
    assert sum(stored) == pytest.approx(10 * (60 + 65 + SECONDS_TO_FIRST_EDGE + 615), rel=0.15)
    assert stored[0] == pytest.approx(10 * SECONDS_TO_FIRST_EDGE, abs=10 * 600)


def test_a_clock_that_is_years_ahead_costs_no_more_than_one_hour(monkeypatch):
    from dataplane.metering.usage import TopicUsage

    looked, original = [], TopicUsage.has_stored
    monkeypatch.setattr(TopicUsage, "has_stored", lambda self, at: looked.append(self) or original(self, at))
    world = World()
    life = world.boot()
    for number in range(10):
        life.meter.topic(f"aaaabbbb.t{number}").stored(10)
    life.run(1)
    looked.clear()
    world.network.step_clock("b1", 1_000 * DAY_MS)
    life.run(9)
    assert 10 <= len(looked) <= 40


# --- topics that go --------------------------------------------------------------------------------------------------


def test_a_deleted_topic_is_told_a_last_time_and_then_its_slot_is_free():
    world = World()
    life = world.boot()
    orders = life.meter.topic(ORDERS)
    orders.stored(100)
    orders.produced(100)
    life.run(20)
    slot = orders.at
    life.sink.refuses = lambda _: True
    orders.stored(-100)
    life.meter.retire(ORDERS)
    life.run(20)
    assert life.meter.topic(EVENTS).at != slot
    life.sink.refuses = lambda _: False
    life.run(20)
    assert totals(life.sink.records)["orders"] == (100, 0, 2000)
    assert life.meter.topic("aaaabbbb.next").at == slot


def test_a_topic_that_comes_again_counts_from_zero_under_another_boot():
    life = World().boot()
    life.meter.topic(ORDERS).produced(100)
    life.meter.retire(ORDERS)
    life.run(15)
    life.meter.topic(ORDERS).produced(7)
    life.run(15)
    assert totals(life.sink.records)["orders"] == (107, 0, 0)
    assert len({r.boot for r in life.sink.of("orders")}) == 2


def test_a_topic_that_comes_again_before_it_was_told_goes_on_counting():
    life = World().boot()
    orders = life.meter.topic(ORDERS)
    orders.produced(100)
    life.meter.retire(ORDERS)
    again = life.meter.topic(ORDERS)
    assert again is orders
    again.produced(7)
    life.run(15)
    assert totals(life.sink.records)["orders"] == (107, 0, 0)
    life.run(100)
    again.produced(1)
    life.run(15)
    assert totals(life.sink.records)["orders"] == (108, 0, 0)


@pytest.mark.parametrize("comes_again", [False, True])
def test_bytes_that_leave_after_the_last_record_of_a_deleted_topic_still_count(comes_again):
    life = World().boot()
    orders = life.meter.topic(ORDERS)
    orders.consumed(10)
    life.meter.retire(ORDERS)
    life.run(15)
    if comes_again:
        life.meter.topic(ORDERS).consumed(100)
    life.meter.topic(EVENTS).produced(5)  # in the slot that was free
    orders.consumed(1)
    orders.consumed(1)
    life.run(15)
    assert totals(life.sink.records) == {"orders": (0, 112 if comes_again else 12, 0), "events": (5, 0, 0)}


# --- boots that follow each other -------------------------------------------------------------------------------------


def test_the_next_boot_tells_what_a_killed_one_counted_and_removes_its_file():
    world = World()
    first = world.boot()
    orders = first.meter.topic(ORDERS)
    orders.stored(1_000)
    orders.produced(50)
    first.run(12)
    orders.produced(6)
    orders.consumed(4)
    first.run(3)
    world.kill()
    assert totals(first.sink.records)["orders"][:2] == (50, 0)
    second = world.boot()
    second.sink.refuses = lambda _: True
    second.run(30)
    assert len(world.counter_files()) == 2
    second.sink.refuses = lambda _: False
    second.run(30)
    (record,) = second.sink.of("orders")
    assert (record.boot, record.hour) == (first.sink.records[0].boot, first.sink.records[0].hour)
    assert totals(first.sink.records + second.sink.records)["orders"] == (56, 4, 15_000)
    assert world.counter_files() == [f"usage-{2:016x}.counters"]


def test_a_boot_that_is_killed_before_it_told_leaves_both_files_to_the_next():
    world = World()
    for amount in (1, 20, 300):
        life = world.boot(start=False)
        life.meter.topic(ORDERS).produced(amount)
        world.kill()
    last = world.boot()
    last.run(12)
    assert totals(last.sink.records)["orders"] == (321, 0, 0)
    assert len(world.counter_files()) == 1


def test_many_topics_of_a_killed_boot_are_told_in_portions():
    world = World()
    first = world.boot(start=False)
    for number in range(1_500):
        first.meter.topic(f"aaaabbbb.t{number}").produced(number)
    world.kill()
    second = world.boot()
    second.run(15)
    assert totals(second.sink.records) == {f"t{n}": (n, 0, 0) for n in range(1, 1_500)}
    assert max(second.sink.calls) <= 64
    assert len(world.counter_files()) == 1


def test_a_generation_survives_the_kill():
    world = World()
    first = world.boot()
    first.meter.topic(ORDERS).produced(100)
    first.meter.retire(ORDERS)
    first.run(15)
    first.meter.topic(ORDERS).produced(7)
    world.kill()
    second = world.boot()
    second.run(15)
    assert totals(first.sink.records + second.sink.records)["orders"] == (107, 0, 0)


@pytest.mark.parametrize("is_told", [True, False])
def test_a_kill_after_a_topic_began_again_from_zero_loses_nothing_and_doubles_nothing(is_told):
    world = World()
    first = world.boot()
    orders = first.meter.topic(ORDERS)
    orders.stored(TEN_PETABYTES)
    orders.produced(7)
    first.sink.refuses = lambda _: not is_told
    boot, read, began_ms = orders.boot, 0, first.meter.now_ms()
    while orders.boot == boot:
        orders.consumed(1)
        read += 1
        first.run(1)
    orders.produced(8)
    first.run(3)
    lived_s = (first.meter.now_ms() - began_ms) // 1000
    world.kill()
    second = world.boot()
    second.run(15)
    found = totals(first.sink.records + second.sink.records)["orders"]
    assert found[:2] == (15, read)
    assert 0 <= lived_s * TEN_PETABYTES - found[2] <= TEN_PETABYTES  # up to a second of storage dies with it
    assert bool(first.sink.records) is is_told
    assert world.counter_files() == [f"usage-{2:016x}.counters"]


def test_the_slot_of_what_was_counted_before_it_began_again_is_given_back_once_that_is_told():
    world = World()
    life = world.boot()
    orders = life.meter.topic(ORDERS)
    orders.stored(TEN_PETABYTES)
    slot = orders.at
    life.sink.refuses = lambda _: True
    life.run(700)
    assert orders.at != slot
    assert life.meter.topic(EVENTS).at != slot
    life.sink.refuses = lambda _: False
    life.run(15)
    assert life.meter.topic("aaaabbbb.next").at == slot


def test_a_file_that_a_power_cut_damaged_is_reported_and_removed():
    world = World()
    world.files.make_directory("/data")
    world.files.write_file("/data/usage-00.counters", b"torn")
    life = world.boot()
    life.run(15)
    assert len(life.said) == 1
    assert world.counter_files() == [f"usage-{1:016x}.counters"]


def test_an_orderly_stop_tells_at_once():
    from dataplane.tasks import Task

    life = World().boot()
    life.meter.topic(ORDERS).produced(5)
    stopping = Task(life.meter.stop(1.0))
    life.run(0.1)
    assert stopping.done
    assert totals(life.sink.records)["orders"] == (5, 0, 0)


def test_an_orderly_stop_waits_only_so_long():
    from dataplane.tasks import Task

    world = World()
    life = world.boot()
    life.sink.refuses = lambda _: True
    life.meter.topic(ORDERS).produced(5)
    stopping = Task(life.meter.stop(1.0))
    life.run(0.9)
    assert not stopping.done
    life.run(0.2)
    assert stopping.done
    world.kill()
    second = world.boot()
    second.run(15)
    assert totals(second.sink.records)["orders"] == (5, 0, 0)


# --- hours of which all is told -----------------------------------------------------------------------------------------


def said(life):
    return [record.hour for record, _ in life.sink.complete]


def test_a_first_boot_says_at_once_that_the_hours_before_it_are_complete():
    life = World().boot()
    life.run(12)
    ((record, _),) = life.sink.complete
    assert (record.broker, record.boot, record.hour) == (1, f"{1:016x}", hour_after(-1))
    life.run(600)
    assert said(life) == [hour_after(-1)]


def test_an_hour_is_complete_once_all_that_was_counted_under_it_is_acknowledged():
    life = World().boot()
    orders, events = life.meter.topic(ORDERS), life.meter.topic(EVENTS)
    life.run(SECONDS_TO_FIRST_EDGE - 3)
    orders.produced(100)
    events.stored(10)
    life.run(30)
    assert said(life) == [hour_after(-1), hour_after(0)]
    _, before = life.sink.complete[-1]
    assert {r.topic for r in life.sink.records[:before] if r.hour == hour_after(0)} == {"orders", "events"}
    assert all(r.hour > hour_after(0) for r in life.sink.records[before:])


def test_while_one_topic_is_refused_its_hour_is_not_complete():
    life = World().boot()
    orders, events = life.meter.topic(ORDERS), life.meter.topic(EVENTS)
    life.sink.refuses = lambda record: getattr(record, "topic", "") == "events"
    life.run(SECONDS_TO_FIRST_EDGE - 3)
    orders.produced(1)
    events.produced(1)
    life.run(3_000)
    assert said(life) == [hour_after(-1)]
    life.sink.refuses = lambda _: False
    life.run(10)
    assert said(life)[-1] == hour_after(0)


def test_after_a_kill_nothing_is_complete_before_the_next_boot_has_told_what_was_left():
    world = World()
    life = world.boot()
    orders = life.meter.topic(ORDERS)
    life.run(SECONDS_TO_FIRST_EDGE - 3)
    orders.produced(77)
    life.run(2)
    world.kill()
    life = world.boot()
    life.sink.refuses = lambda record: getattr(record, "boot", "") == f"{1:016x}"
    life.run(1_800)
    assert said(life) == []
    life.sink.refuses = lambda _: False
    life.run(10)
    assert said(life) == [hour_after(0)]
    assert totals(life.sink.records)["orders"][0] == 77


def test_a_statement_that_was_not_acknowledged_is_made_again():
    life = World().boot()
    life.sink.refuses = lambda record: not hasattr(record, "topic")
    life.run(2 * 3600)
    assert said(life) == []
    life.sink.refuses = lambda _: False
    life.run(10)
    assert max(said(life)) == hour_after(1)


def test_many_quiet_topics_of_an_hour_are_all_told_before_it_is_complete():
    life = World().boot()
    for n in range(MANY):
        life.meter.topic(f"aaaabbbb.t{n}").stored(10)
    life.run(SECONDS_TO_FIRST_EDGE + 60)
    record, before = life.sink.complete[-1]
    assert record.hour == hour_after(0)
    assert len({r.topic for r in life.sink.records[:before] if r.hour == hour_after(0)}) == MANY


def test_quiet_topics_that_are_looked_at_in_portions_do_not_make_an_hour_complete_early():
    life = World().boot()
    for n in range(8_000):
        usage = life.meter.topic(f"aaaabbbb.t{n}")
        if (
            n % 4_000 == 0
        ):  # wherever the walk around all topics stands, one of them is far behind others that say nothing
            usage.stored(10)
    life.run(SECONDS_TO_FIRST_EDGE + 60)
    record, before = life.sink.complete[-1]
    assert record.hour == hour_after(0)
    assert {r.topic for r in life.sink.records[:before] if r.hour == hour_after(0)} == {"t0", "t4000"}
    assert all(r.hour != hour_after(0) for r in life.sink.records[before:])


def test_many_topics_of_an_earlier_boot_are_all_told_before_anything_is_complete():
    world = World()
    life = world.boot()
    for n in range(300):
        life.meter.topic(f"aaaabbbb.t{n}").produced(1)
    life.run(2)
    world.kill()
    life = world.boot()
    life.run(30)
    _, before = life.sink.complete[0]
    assert len({r.topic for r in life.sink.records[:before]}) == 300


TWO = ("/one", "/two")


def test_who_has_not_seen_what_an_earlier_boot_counted_does_not_say_that_it_comes_after_it():
    world = World(directories=TWO)
    life = world.boot()
    life.meter.topic(ORDERS).produced(77)
    life.run(12)  # it speaks
    life.meter.topic(ORDERS).produced(1)
    world.kill()
    life = world.boot(offline=["/one"])
    life.meter.topic(ORDERS).produced(5)
    life.run(SECONDS_TO_FIRST_EDGE + 60)
    assert [record.after for record, _ in life.sink.complete] == [(), ()]
    world.kill()
    life = world.boot()
    life.run(3_600)
    assert [record.after for record, _ in life.sink.complete] == [(f"{1:016x}", f"{2:016x}")]
    assert totals(life.sink.records)["orders"][0] == 78 + 5, "each boot counted in another directory"


def test_boots_that_never_spoke_are_passed_over():
    world = World()
    world.boot().run(12)
    world.kill()
    for _ in range(3):
        world.boot().run(2)
        world.kill()
    life = world.boot()
    life.run(SECONDS_TO_FIRST_EDGE)
    assert f"{1:016x}" in life.sink.complete[-1][0].after


def test_a_boot_whose_clock_is_behind_counts_under_no_hour_that_was_closed():
    world = World()
    life = world.boot()
    life.meter.topic(ORDERS).produced(100)
    life.run(SECONDS_TO_FIRST_EDGE + 60)
    assert said(life)[-1] == hour_after(0)
    world.kill()
    world.network.step_clock("b1", -2 * 3_600_000)
    later = world.boot()
    later.meter.topic(ORDERS).produced(5)
    later.run(600)
    assert {r.hour for r in later.sink.records if r.boot == f"{2:016x}"} == {hour_after(1)}
    assert said(later) == []
    world.network.step_clock("b1", 2 * 3_600_000)
    later.run(3_600)
    assert said(later) == [hour_after(1)]


def test_a_file_that_the_disk_does_not_give_stays_and_nothing_is_complete():
    world = World()
    life = world.boot()
    life.meter.topic(ORDERS).produced(77)
    life.run(2)
    world.kill()
    read, world.files.read_file = world.files.read_file, failing_read
    life = world.boot()
    life.run(30)
    assert [record.after for record, _ in life.sink.complete] == [()]
    assert any("cannot be read now" in line for line in life.said)
    world.kill()
    world.files.read_file = read
    life = world.boot()
    life.run(30)
    assert totals(life.sink.records)["orders"][0] == 77
    life.run(SECONDS_TO_FIRST_EDGE)
    assert [(record.hour, record.after) for record, _ in life.sink.complete] == [
        (hour_after(0), (f"{1:016x}", f"{2:016x}"))
    ]


def failing_read(path):
    raise OSError(5, "Input/output error", path)


def test_a_file_that_cannot_be_removed_holds_nothing_up_and_is_told_again():
    world = World()
    life = world.boot()
    life.meter.topic(ORDERS).produced(77)
    life.run(2)
    world.kill()
    remove, world.files.remove = world.files.remove, failing_read
    life = world.boot()
    life.run(30)
    assert said(life) == [hour_after(-1)]
    assert sum("cannot be removed" in line for line in life.said) == 1
    world.kill()
    world.files.remove = remove
    again = world.boot()
    again.run(30)
    assert totals([*life.sink.records, *again.sink.records])["orders"][0] == 77
    assert world.counter_files() == [f"usage-{3:016x}.counters"]


def test_what_a_topic_that_left_sends_after_all_is_told_before_its_hour_is_complete():
    life = World().boot()
    orders = life.meter.topic(ORDERS)
    orders.produced(5)
    life.meter.retire(ORDERS)
    life.run(1_000)  # told for the last time, and dropped from the walk around all topics
    assert orders.has_left
    life.run(SECONDS_TO_FIRST_EDGE - 1_000 - 3)
    orders.consumed(3)  # a connection still sends what it had read
    life.run(60)
    _, before = life.sink.complete[-1]
    assert [r.consumed_bytes for r in life.sink.records[:before] if r.hour == hour_after(0)][-1] == 3
    assert all(r.hour != hour_after(0) for r in life.sink.records[before:])


def test_a_topic_that_is_made_again_while_a_late_answer_leaves_is_closed_at_every_edge():
    life = World().boot()
    orders = life.meter.topic(ORDERS)
    orders.produced(5)
    life.meter.retire(ORDERS)
    life.run(1_000)
    orders.consumed(3)
    again = life.meter.topic(ORDERS)
    assert again is orders
    again.stored(10)
    life.run(SECONDS_TO_FIRST_EDGE + 3_700)
    assert hourly(life.sink.records, "orders")[hour_after(1)][2] == 36_000
    for record, before in life.sink.complete[1:]:
        told = hourly(life.sink.records[:before], "orders").get(record.hour)
        assert told == hourly(life.sink.records, "orders").get(record.hour)


# --- where very many topics change --------------------------------------------------------------------------------------


def test_where_very_many_change_so_many_a_second_are_told_and_each_in_its_turn():
    life = World(usage_emit_records_per_s=100).boot()
    usages = [life.meter.topic(f"aaaabbbb.t{n}") for n in range(2_000)]
    told = [0]
    for _ in range(120):
        for usage in usages:
            usage.produced(1)
        life.run(1)
        told.append(len(life.sink.records))
    a_second = [after - before for before, after in pairwise(told)]
    assert max(a_second) <= 200, "what was saved up, and what is earned meanwhile"
    assert sum(a_second) >= 100 * 100
    often = Counter(record.topic for record in life.sink.records)
    assert len(often) == 2_000
    assert max(often.values()) - min(often.values()) <= 1


def test_however_slowly_changes_are_told_an_hour_is_closed_at_once():
    life = World(usage_emit_records_per_s=1).boot()
    usages = [life.meter.topic(f"aaaabbbb.t{n}") for n in range(MANY)]
    life.run(SECONDS_TO_FIRST_EDGE - 3)
    for usage in usages:
        usage.produced(100)
    life.run(60)
    assert said(life)[-1] == hour_after(0)
    _, before = life.sink.complete[-1]
    closed = [r for r in life.sink.records[:before] if r.hour == hour_after(0)]
    assert {r.topic: r.produced_bytes for r in closed} == {f"t{n}": 100 for n in range(MANY)}


def test_an_orderly_stop_tells_all_that_has_changed_however_slowly_it_was_told():
    from dataplane.tasks import Task

    life = World(usage_emit_records_per_s=1).boot()
    for number in range(300):
        life.meter.topic(f"aaaabbbb.t{number}").produced(5)
    stopping = Task(life.meter.stop(1.0))
    life.run(0.5)
    assert stopping.done
    assert totals(life.sink.records) == {f"t{n}": (5, 0, 0) for n in range(300)}


# --- whose counters they are --------------------------------------------------------------------------------------------

ONE_ID, OTHER_ID = UUID(int=2**100 + 1), UUID(int=2**100 + 2)


def ids(records):
    """UUID -> the most that was produced, of every boot."""
    found = {}
    for r in records:
        found[r.topic_id] = max(found.get(r.topic_id, 0), r.produced_bytes)
    return found


def test_a_record_names_cluster_and_uuid():
    life = World().boot()
    life.meter.topic(ORDERS, ONE_ID).produced(5)
    life.meter.topic(EVENTS).produced(5)
    life.run(12)
    assert {(r.topic, r.topic_id, r.cluster) for r in life.sink.records} == {
        ("orders", topic_id_text(ONE_ID), "default"),
        ("events", "", "default"),
    }
    (statement, _) = life.sink.complete[0]
    assert statement.cluster == "default"


def test_what_a_killed_boot_left_is_told_with_its_uuid():
    world = World()
    world.boot(start=False).meter.topic(ORDERS, ONE_ID).produced(5)
    world.kill()
    life = world.boot()
    life.run(12)
    assert ids(life.sink.of("orders")) == {topic_id_text(ONE_ID): 5}


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_topic_that_is_made_anew_before_the_one_before_was_told_counts_apart(is_killed):
    world = World()
    life = world.boot()
    life.sink.refuses = lambda _: True
    orders = life.meter.topic(ORDERS, ONE_ID)
    orders.stored(10)
    orders.produced(100)
    life.run(5)
    orders.stored(-10)
    life.meter.retire(ORDERS)
    life.run(15)
    life.meter.topic(ORDERS, OTHER_ID).produced(7)
    if is_killed:
        world.kill()
        life = world.boot()
    life.sink.refuses = lambda _: False
    life.run(30)
    records = life.sink.of("orders")
    assert totals(records)["orders"] == (107, 0, 50)
    assert ids(records) == {topic_id_text(ONE_ID): 100, topic_id_text(OTHER_ID): 7}
    assert len({(r.boot, r.topic_id) for r in records}) == len({r.boot for r in records}) == 2


def test_boots_that_ended_before_they_could_speak_are_named_by_the_next_one_that_does():
    world = World()
    world.boot().run(12)
    for _ in range(3):  # all of them within an hour of which nothing can be said yet
        world.kill()
        life = world.boot()
        life.meter.topic(ORDERS).produced(1)
        life.run(30)
        assert said(life) == []
        assert len(world.counter_files()) == 1
    world.kill()
    life = world.boot()
    life.run(SECONDS_TO_FIRST_EDGE + 60)
    assert life.sink.complete[0][0].after == tuple(f"{boot:016x}" for boot in (1, 2, 3, 4))


def test_a_boot_that_spoke_names_those_before_it_to_the_next_one_too():
    """Readers may not have believed it: a disk was away when it spoke, and is back."""
    world = World(directories=TWO)
    world.boot().run(12)
    world.kill()
    world.boot().run(SECONDS_TO_FIRST_EDGE + 60)  # tells and removes what the first one left, and speaks
    world.kill()
    life = world.boot()
    life.run(3_600)
    assert life.sink.complete[-1][0].after == (f"{1:016x}", f"{2:016x}")


def test_nothing_is_said_of_any_hour_before_all_that_earlier_boots_left_is_acknowledged():
    world = World()
    life = world.boot()
    life.run(SECONDS_TO_FIRST_EDGE - 30)
    life.meter.topic(ORDERS).produced(77)
    world.kill()
    life = world.boot()
    life.sink.refuses = lambda record: getattr(record, "boot", "") == f"{1:016x}"
    life.meter.topic(EVENTS).produced(1)
    life.run(3_600)
    assert said(life) == []
    life.sink.refuses = lambda _: False
    life.run(10)
    assert said(life)[-1] == hour_after(0)
