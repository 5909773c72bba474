"""What is told of users: when, under which hour, to the end; how many are kept apart, and when they are forgotten."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from dataplane.metering.instances import NOTHING
from dataplane.tenancy import user_traffic
from dataplane.tenancy.user_traffic import MOST_USERS, UserTraffics
from quota.contracts.usage import HoursComplete, UserRecord
from tests.dataplane.metering.support import SECONDS_TO_FIRST_EDGE, World
from tests.dataplane.metering.test_what_is_told_and_when import hour_after

ONE, TWO = "ins-aaaabbbb", "ins-ccccdddd"
BOOT = f"{1:016x}"


class Served:
    """Instances of a broker, with users whose counters a test moves."""

    def __init__(self, *ids):
        self.tables = {name: UserTraffics() for name in ids}

    def ids(self):
        return list(self.tables)

    def read(self, instance_id):
        return NOTHING if instance_id in self.tables else None

    def users(self, instance_id):
        return self.tables.get(instance_id)

    def moves(self, instance_id, name, size, *, stays=False):
        """A connection of this user: it comes, moves, and goes."""
        table = self.tables[instance_id]
        user = table.came(name) if name else table.nobody
        table.add(user, size, 2 * size, 1)
        if name and not stays:
            table.went(user)


def lives(*ids, **settings):
    life = World(**settings).boot()
    life.meter.instances.source = served = Served(*ids)
    return life, served


def said(records):
    return [(r.instance, r.boot, r.user, r.wire_in_bytes, r.wire_out_bytes, r.requests) for r in records]


def totals(records):
    """(instance, user) -> bytes that came, over all hours and boots, as a reader has them."""
    largest = {}
    for r in records:
        key = (r.boot, r.instance, r.user)
        largest[key] = max(largest.get(key, 0), r.wire_in_bytes)
    sums = {}
    for (_, instance, user), size in largest.items():
        sums[instance, user] = sums.get((instance, user), 0) + size
    return sums


def test_users_are_told_each_minute_if_they_did_anything_and_of_each_instance_by_itself():
    life, served = lives(ONE, TWO)
    served.moves(ONE, "alice", 100)
    served.moves(ONE, "bob", 7)
    served.moves(TWO, "alice", 5)
    served.moves(TWO, "", 3)
    life.run(59)
    assert life.sink.users == []
    life.run(3)
    assert said(life.sink.users) == [
        (ONE, BOOT, "alice", 100, 200, 1),
        (ONE, BOOT, "bob", 7, 14, 1),
        (TWO, BOOT, "alice", 5, 10, 1),
        (TWO, BOOT, "", 3, 6, 1),
    ]
    life.run(300)
    assert len(life.sink.users) == 4, "who did nothing is not told again"
    served.moves(ONE, "bob", 1)
    life.run(61)
    assert said(life.sink.users[4:]) == [(ONE, BOOT, "bob", 8, 16, 2)]


def test_an_hour_is_complete_once_its_users_are_told():
    life, served = lives(ONE)
    life.run(SECONDS_TO_FIRST_EDGE - 2)
    served.moves(ONE, "alice", 7)
    life.run(30)
    told = [(type(record), record.hour) for record in life.sink.all]
    assert (UserRecord, hour_after(0)) in told[: told.index((HoursComplete, hour_after(0)))]


def test_while_one_is_refused_its_hour_is_not_complete():
    life, served = lives(ONE)
    life.run(30)
    life.sink.refuses = lambda record: isinstance(record, UserRecord)
    served.moves(ONE, "alice", 7)
    life.run(SECONDS_TO_FIRST_EDGE)
    assert [record.hour for record, _ in life.sink.complete] == [hour_after(-1)]
    life.sink.refuses = lambda _: False
    life.run(10)
    assert [record.hour for record, _ in life.sink.complete] == [hour_after(-1), hour_after(0)]


def test_beyond_the_bound_the_rest_counts_under_one_name_and_users_who_are_gone_make_room_at_the_hours_edge():
    life, served = lives(ONE, TWO)
    for number in range(MOST_USERS):
        served.moves(ONE, f"user-{number}", 1)
    served.moves(ONE, "late", 50)
    served.moves(ONE, "later", 7)
    served.moves(TWO, "late", 5)
    life.run(70)
    told = totals(life.sink.users)
    assert (told[ONE, "*"], told[TWO, "late"]) == (57, 5)
    assert (ONE, "late") not in told
    assert sum(size for (instance, _), size in told.items() if instance == ONE) == MOST_USERS + 57
    life.run(61)
    served.moves(ONE, "late", 1)
    life.run(SECONDS_TO_FIRST_EDGE)
    assert totals(life.sink.users)[ONE, "*"] == 58, "no room before"
    served.moves(ONE, "late", 9)
    life.run(61)
    assert totals(life.sink.users)[ONE, "late"] == 9


def test_a_tenant_whose_users_come_and_go_makes_few_keys_an_hour(monkeypatch):
    monkeypatch.setattr(user_traffic, "MOST_USERS", 20)
    monkeypatch.setattr(user_traffic, "_LOOKED_AT", 5)
    life, served = lives(ONE)
    life.run(SECONDS_TO_FIRST_EDGE)
    for number in range(3 * 60):
        for each in range(10):
            served.moves(ONE, f"user-{(10 * number + each) % 200}", 1)
        life.run(60)
    keys = {(record.boot, record.user) for record in life.sink.users}
    assert len(keys) <= 20 + 4 * 5 + 1, "those that fit, five more at each edge, and the rest"
    assert sum(totals(life.sink.users).values()) == 3 * 600


def test_users_with_connections_are_never_forgotten():
    life, served = lives(ONE)
    for number in range(MOST_USERS):
        served.moves(ONE, f"user-{number}", 1, stays=True)
    life.run(3 * 3600)
    served.moves(ONE, "late", 50)
    life.run(61)
    assert totals(life.sink.users)[ONE, "*"] == 50
    assert len(served.tables[ONE]._named) == MOST_USERS


def test_a_user_who_is_gone_is_forgotten_and_counts_on_when_he_comes_again():
    life, served = lives(ONE)
    served.moves(ONE, "alice", 100)
    served.moves(ONE, "bob", 1, stays=True)
    life.run(SECONDS_TO_FIRST_EDGE + 3600 - 60)
    assert set(served.tables[ONE]._named) == {"alice", "bob"}
    life.run(180)
    assert set(served.tables[ONE]._named) == {"bob"}, "the second edge without a connection"
    served.moves(ONE, "alice", 5)
    served.tables[ONE].add(served.tables[ONE].came("bob"), 10, 0, 1)
    life.run(61)
    assert said(life.sink.users)[-2:] == [(ONE, f"{BOOT}.1", "alice", 5, 10, 1), (ONE, BOOT, "bob", 11, 2, 2)]
    assert totals(life.sink.users) == {(ONE, "alice"): 105, (ONE, "bob"): 11}


def test_users_of_an_instance_that_goes_are_told_to_their_end_and_count_from_zero_when_it_comes_back():
    life, served = lives(ONE)
    served.moves(ONE, "alice", 100)
    life.run(70)
    served.moves(ONE, "alice", 11)
    served.moves(ONE, "bob", 3)
    life.meter.instances.gone(ONE, NOTHING, served.tables.pop(ONE))
    served.tables[ONE] = UserTraffics()
    served.moves(ONE, "alice", 5)
    served.moves(ONE, "bob", 2)
    life.run(61)
    assert totals(life.sink.users) == {(ONE, "alice"): 116, (ONE, "bob"): 5}
    assert {r.boot for r in life.sink.users} == {BOOT, f"{BOOT}.1"}


def test_what_certificates_name_is_told_within_the_limit_of_names_and_each_by_itself():
    table = UserTraffics()
    names = ["x" * 600 + "a", "x" * 600 + "b", "nul\0", "*", "ANONYMOUS", "\ud800", "fine"]
    told = [table.came(name).name for name in names]
    assert len(set(told)) == len(names)
    assert all(len(name) <= 255 and name.isprintable() for name in told)
    assert told[-1] == "fine"
    assert not {"", "*"} & set(told)


def test_very_many_are_told_in_portions():
    life, served = lives(*(f"ins-{number:08d}" for number in range(20)))
    for instance_id in served.ids():
        for number in range(200):
            served.moves(instance_id, f"u{number}", 1)
    life.run(90)
    assert sum(totals(life.sink.users).values()) == 4_000
    assert max(life.sink.calls) <= 64


def test_where_very_many_move_something_so_many_a_second_are_told_and_all_at_the_hours_end():
    life, served = lives(*(f"ins-{number:08d}" for number in range(10)), usage_emit_records_per_s=10)
    topic = life.meter.topic("aaaabbbb.orders")

    def all_move():
        for instance_id in served.ids():
            for number in range(200):
                served.moves(instance_id, f"u{number}", 1)

    told = []
    for _ in range(100):
        all_move()
        topic.produced(1)
        life.run(1)
        told.append(len(life.sink.users))
    a_second = [after - before for before, after in pairwise(told)]
    assert max(a_second) <= 20, "what was saved up, and what is earned meanwhile"
    assert 10 * 30 <= told[-1] < 10 * 100
    assert max(record.produced_bytes for record in life.sink.records) > 85, "topics do not wait for users"

    life.run(SECONDS_TO_FIRST_EDGE - 101)
    all_move()
    life.run(62)
    assert sum(totals(life.sink.users).values()) == 2_000 * 101


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_lost_or_doubled_whoever_comes_and_goes(seed, monkeypatch):
    monkeypatch.setattr(user_traffic, "MOST_USERS", 3)
    dice, world = Random(seed), World()
    life = world.boot()
    life.meter.instances.source = served = Served(ONE, TWO)
    moved = {ONE: 0, TWO: 0}
    for _ in range(150):
        what = dice.choice(["move", "move", "move", "stay", "refuse", "accept", "accept", "go"])
        name = dice.choice([ONE, TWO])
        if what in ("move", "stay") and name in served.tables:
            size = dice.randint(1, 10_000)
            user = dice.choice(["", "alice", "bob", "carol", "dave", "erin"])
            served.moves(name, user, size, stays=what == "stay" and dice.random() < 0.1)
            moved[name] += size
        elif what == "refuse":
            share, chance = dice.random(), Random(dice.random())
            life.sink.refuses = lambda _, share=share, chance=chance: chance.random() < share
        elif what == "accept":
            life.sink.refuses = lambda _: False
        elif what == "go" and name in served.tables:
            life.meter.instances.gone(name, NOTHING, served.tables.pop(name))
        elif what == "go":
            served.tables[name] = UserTraffics()
        life.run(dice.choice([1, 7, 60, 500, 2_000]))
    life.sink.refuses = lambda _: False
    life.run(2 * 3_600)
    sums = totals(life.sink.users)
    for name in (ONE, TWO):
        assert sum(size for (instance, _), size in sums.items() if instance == name) == moved[name]
    for at, record in enumerate(life.sink.all):
        if isinstance(record, HoursComplete):
            later = [r for r in life.sink.all[at:] if isinstance(r, UserRecord) and r.hour <= record.hour]
            assert later == [], "an hour that is complete does not change"
