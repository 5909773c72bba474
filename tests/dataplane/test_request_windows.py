"""What is told of requests: a window once it is over, each once, all that is kept to who is new; nothing of the idle."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dataplane.flow import windows as module
from dataplane.flow.windows import KEPT, RequestWindows
from dataplane.metering.moved import MovedTopic
from dataplane.protocol.api import ApiKey
from dataplane.tenancy.request_figures import RequestFigures
from quota.agent.agent import NOTHING_CARRIED, Carried
from quota.contracts.requests import MOST_TEXT, RequestCounts
from quota.contracts.topics_moved import MOST_NAMED, MOST_NAMED_BYTES
from quota.steps import run_through

NOON = 1_740_830_400


class World:
    def __init__(self, count=2):
        self.now_s = NOON + 3
        self.instances = [
            SimpleNamespace(spec=SimpleNamespace(id=f"ins-{number}"), figures=RequestFigures())
            for number in range(count)
        ]
        self.windows = RequestWindows(lambda: self.instances, lambda: self.now_s * 1000)

    def ask(self, number=0, count=1):
        for _ in range(count):
            self.instances[number].figures.answered(ApiKey.METADATA, 0.001)

    def told(self, *, is_whole=False):
        found, self.until = run_through(self.windows.report_steps(is_whole=is_whole))
        return {
            name: {at - NOON: RequestCounts.from_text(text).requests for at, text in ours.items()}
            for name, ours in found.items()
        }


@pytest.fixture
def world():
    return World()


def test_a_window_is_told_once_it_is_over_and_only_of_who_had_requests(world):
    world.ask(count=3)
    assert world.told() == {}
    world.now_s = NOON + 11
    assert world.told() == {"ins-0": {0: 3}}
    assert world.told() == {}


def test_what_comes_until_a_window_is_taken_is_in_it_and_nothing_is_in_two(world):
    world.ask()
    world.now_s = NOON + 10
    world.ask()
    assert world.told() == {"ins-0": {0: 2}}
    world.ask()
    world.now_s = NOON + 20
    assert world.told() == {"ins-0": {10: 1}}


def test_a_loop_that_stood_still_labels_by_the_windows_beginning(world):
    world.ask()
    world.now_s = NOON + 47
    assert world.told() == {"ins-0": {0: 1}}
    world.ask()
    world.now_s = NOON + 50
    assert world.told() == {"ins-0": {40: 1}}


def test_who_is_new_is_told_all_of_the_last_minute(world):
    for number in range(KEPT + 2):
        world.ask(count=number + 1)
        world.now_s = NOON + 10 * (number + 1)
        world.told()
    assert world.told(is_whole=True) == {"ins-0": {10 * number: number + 1 for number in range(2, KEPT + 2)}}
    assert world.told() == {}


def test_a_report_that_is_dropped_while_it_is_made_loses_nothing(world):
    many = World(count=50)
    for number in range(50):
        many.ask(number)
    many.now_s = NOON + 10
    steps = many.windows.report_steps(is_whole=False)
    next(steps)
    steps.close()
    found = many.told(is_whole=True)
    many.now_s = NOON + 20
    found = [found, many.told()]
    assert sum(sum(ours.values()) for each in found for ours in each.values()) == 50


@pytest.mark.parametrize("dropped_after", range(1, 6))
def test_a_report_that_is_dropped_while_it_is_made_tells_no_byte_twice_and_loses_none(dropped_after):
    many = World(count=50)
    flows = Flows(many)
    names = [f"ins-{number}" for number in range(50)]

    def carry(each):
        for number, name in enumerate(names, 1):
            flows.now[name] = Carried(number, each, 0)
        for number in range(50):
            many.ask(number)

    carry(1000)
    assert flows.all_told(10) == 50_000
    carry(1001)
    many.now_s = NOON + 20
    steps = many.windows.report_steps(is_whole=False)
    for _ in range(dropped_after):
        next(steps)
    steps.close()  # a connection to another master begins
    carry(1003)
    assert flows.all_told(30) == 3 * 50


def test_no_report_tells_more_than_a_bounded_number_and_the_next_goes_on(monkeypatch):
    monkeypatch.setattr(module, "MOST_TOLD", 4)
    many = World(count=10)
    for number in range(10):
        many.ask(number)
    many.now_s = NOON + 10
    told = [many.told() for _ in range(4)]
    assert [len(each) for each in told] == [4, 4, 2, 0]
    assert len({name for each in told for name in each}) == 10


def test_no_report_is_larger_than_a_master_takes_and_the_next_goes_on(monkeypatch):
    monkeypatch.setattr(module, "MOST_TOLD_BYTES", 150)
    many = World(count=5)
    for number in range(5):
        many.ask(number)
    many.now_s = NOON + 10
    first, _ = run_through(many.windows.report_steps(is_whole=False))
    sizes = [len(text) for ours in first.values() for text in ours.values()]
    assert sum(sizes[:-1]) < 150 <= sum(sizes)
    told = [many.told() for _ in range(5)]
    assert len(sizes) + sum(len(each) for each in told) == 5


def test_each_report_says_of_which_windows_nothing_is_missing(world):
    world.told(is_whole=True)
    assert world.until == NOON, "the present window is not over"
    world.ask()
    world.now_s = NOON + 10
    world.told()
    assert world.until == NOON + 10


def test_windows_that_queue_up_are_told_in_their_order_and_are_not_whole_before_that(monkeypatch):
    monkeypatch.setattr(module, "MOST_TOLD", 4)
    many = World(count=6)
    seen = []
    for number in range(3):
        for instance in range(6):
            many.ask(instance)
        many.now_s = NOON + 10 * (number + 1)
        many.told(is_whole=number == 2)
        seen.append(many.until - NOON)
    assert seen == [0, 10, 0], "six come each time, and four are told"
    while many.told():
        seen.append(many.until - NOON)
    assert seen[3:] == [10, 20, 20, 30]


def test_who_is_new_hears_of_a_window_that_ends_meanwhile_after_those_before_it(monkeypatch):
    monkeypatch.setattr(module, "MOST_TOLD", 1)
    many = World(count=2)
    for number in range(2):
        many.ask(number)
    many.now_s = NOON + 10
    many.told(is_whole=True)
    many.ask()
    many.now_s = NOON + 20
    assert [(many.told(), many.until - NOON) for _ in range(3)] == [
        ({"ins-1": {0: 1}}, 10),
        ({"ins-0": {10: 1}}, 20),
        ({}, 20),
    ]


def test_taking_of_many_pauses():
    many = World(count=1_000)
    for number in range(100):
        many.ask(number)
    many.now_s = NOON + 10
    assert sum(1 for _ in many.windows.report_steps(is_whole=False)) >= 10


def test_looking_at_many_that_rest_pauses():
    many = World(count=1_000)
    Flows(many)
    many.now_s = NOON + 10
    assert sum(1 for _ in many.windows.report_steps(is_whole=False)) == 10


def test_sums_of_instances_that_are_gone_are_forgotten(world):
    flows = Flows(world)
    flows.now |= {"ins-0": Carried(1, 10, 0), "ins-1": Carried(2, 10, 0)}
    assert flows.all_told(10) == 20
    del world.instances[0]
    assert flows.all_told(20) == 0
    assert list(world.windows._told_of) == ["ins-1"]


def test_a_clock_that_is_set_back_takes_nothing_twice(world):
    world.ask()
    world.now_s = NOON - 3600
    assert world.told() == {}
    world.ask()
    world.now_s = NOON - 3590
    assert world.told() == {"ins-0": {-3600: 2}}
    assert world.until == NOON - 3590


def test_after_a_clock_was_set_back_windows_of_the_time_before_drive_out_none_that_follow(world):
    for number in range(KEPT):
        world.ask()
        world.now_s = NOON + 10 * (number + 1)
        world.told()
    world.now_s = NOON - 3600
    world.told()
    for number in range(KEPT):
        world.ask()
        world.now_s = NOON - 3590 + 10 * number
        assert world.told() == {"ins-0": {10 * number - 3600: 1}}
    assert sorted(world.told(is_whole=True)["ins-0"]) == [10 * number - 3600 for number in range(KEPT)]


def test_who_is_new_is_told_nothing_that_is_older_than_a_minute(world):
    world.ask()
    world.now_s = NOON + 10
    world.told()
    world.now_s = NOON + 600
    world.told()
    world.ask()
    world.now_s = NOON + 610
    assert world.told(is_whole=True) == {"ins-0": {600: 1}}


def test_a_text_that_no_master_would_take_costs_the_others_nothing(world, monkeypatch):
    monkeypatch.setattr(module, "MOST_TEXT", 60)
    world.instances[0].figures.refused(ApiKey.METADATA, range(1, 30))
    world.ask()
    world.ask(1)
    world.now_s = NOON + 10
    assert world.told(is_whole=True) == {"ins-1": {0: 1}}


def test_an_instance_that_is_gone_is_told_of_as_long_as_its_windows_are_kept(world):
    world.ask()
    world.now_s = NOON + 10
    run_through(world.windows.report_steps(is_whole=False))
    world.instances.clear()
    assert world.told(is_whole=True) == {"ins-0": {0: 1}}


class Flows:
    """What the agent says was carried, by instance id."""

    def __init__(self, world):
        self.now = {}
        world.windows = RequestWindows(
            lambda: world.instances, lambda: world.now_s * 1000, lambda name: self.now.get(name, NOTHING_CARRIED)
        )
        self._world = world

    def all_told(self, seconds):
        """Bytes produced, of all instances and windows that are told then."""
        self._world.now_s = NOON + seconds
        found, _ = run_through(self._world.windows.report_steps(is_whole=False))
        return sum(RequestCounts.from_text(text).produced_bytes for ours in found.values() for text in ours.values())

    def told(self, seconds):
        """Bytes produced and consumed of the first instance, in a window that is over then; None: nothing is told of it."""
        self._world.now_s = NOON + seconds
        found, _ = run_through(self._world.windows.report_steps(is_whole=False))
        texts = found.get("ins-0", {})
        assert len(texts) <= 1
        counts = [RequestCounts.from_text(text) for text in texts.values()]
        return (counts[0].produced_bytes, counts[0].consumed_bytes, counts[0].carried_windows) if counts else None


def test_windows_have_every_byte_once_with_requests_or_without(world):
    flows = Flows(world)
    flows.now["ins-0"] = Carried(1, 1000, 0)
    world.ask()
    assert flows.told(10) == (1000, 0, 1)
    flows.now["ins-0"] = Carried(1, 1500, 70)  # no answer left in these ten seconds
    assert flows.told(20) == (500, 70, 1)
    assert flows.told(30) is None
    world.ask()
    assert flows.told(40) == (0, 0, 1)
    flows.now["ins-0"] = Carried(1, 1600, 70)
    assert flows.told(50) == (100, 0, 1)


def test_a_sum_that_gets_smaller_for_a_moment_is_not_counted_twice(world):
    """Its request was paid for, and then refused."""
    flows = Flows(world)
    flows.now["ins-0"] = Carried(1, 1000, 0)
    assert flows.told(10) == (1000, 0, 1)
    flows.now["ins-0"] = Carried(1, 900, 0)
    assert flows.told(20) is None
    flows.now["ins-0"] = Carried(1, 1100, 0)
    assert flows.told(30) == (100, 0, 1)


def test_an_instance_that_was_away_in_between_begins_at_nothing(world):
    flows = Flows(world)
    flows.now["ins-0"] = Carried(1, 1000, 5)
    assert flows.told(10) == (1000, 5, 1)
    flows.now["ins-0"] = Carried(2, 1200, 0)
    assert flows.told(20) == (1200, 0, 1)
    del flows.now["ins-0"]
    assert flows.told(30) is None


class Topics:
    """What meters say of topics, in the place of `MovedTopics`."""

    def __init__(self, world):
        self.now = []
        world.windows = RequestWindows(lambda: world.instances, lambda: world.now_s * 1000, topics=self)
        self._world = world

    def __len__(self):
        return len(self.now)

    def take(self, most):
        found, self.now = self.now[:most], self.now[most:]
        return found

    def moves(self, topic, produced, consumed=0, instance="ins-0", records=1):
        self.now.append(MovedTopic(instance, topic, produced, consumed, records))

    def steps(self, seconds):
        self._world.now_s = NOON + seconds
        return self._world.windows.report_steps(is_whole=False)

    def told(self, seconds):
        """By instance; nothing of those that are not told of."""
        found, _ = run_through(self.steps(seconds))
        return {name: RequestCounts.from_text(text).topics for name, ours in found.items() for text in ours.values()}


def test_a_window_has_what_topics_moved_of_the_instance_also_without_a_request(world):
    topics = Topics(world)
    topics.moves("orders", 100, 5, records=3)
    topics.moves("events", 7, instance="ins-1")
    world.ask()
    found = topics.told(10)
    assert {name: each.to_json() for name, each in found.items()} == {
        "ins-0": {"orders": [100, 5, 0, 3]},
        "ins-1": {"events": [7, 0, 0, 1]},
    }
    assert topics.told(20) == {}


def test_a_window_in_which_nothing_moved_says_so(world):
    topics = Topics(world)
    world.ask()
    assert topics.told(10)["ins-0"].is_empty


def test_a_report_that_is_dropped_while_topics_are_gathered_loses_none(world):
    topics = Topics(world)
    for number in range(1200):
        topics.moves(f"t{number}", 1)
    steps = topics.steps(10)
    for _ in range(2):
        next(steps)
    steps.close()
    topics.moves("late", 5)
    found = topics.told(20)["ins-0"]
    assert found.total == (1205, 0)


def test_of_very_many_topics_those_with_most_are_named_and_steps_stay_short(world):
    topics = Topics(world)
    for number in range(10_000):
        topics.moves(f"t{number}", number)
    assert sum(1 for _ in topics.steps(10)) >= 20
    found = topics.told(20) or RequestCounts.from_text(world.windows._kept[NOON]["ins-0"]).topics
    assert set(found.names) == {f"t{number}" for number in range(10_000 - MOST_NAMED, 10_000)}
    assert found.total == (sum(range(10_000)), 0)


def test_long_names_do_not_make_a_text_too_long(world):
    topics = Topics(world)
    for number in range(300):
        topics.moves(f"{number:0249}", 2**50)
    found, _ = run_through(topics.steps(10))
    (text,) = found["ins-0"].values()
    assert len(text) < 2 * MOST_NAMED_BYTES < MOST_TEXT


def test_where_very_many_instances_are_busy_fewer_topics_of_each_are_named(monkeypatch):
    monkeypatch.setattr(module, "MOST_TOPIC_BYTES", 6_000)
    many = World(count=50)
    topics = Topics(many)
    for number in range(50):
        for topic in range(20):
            topics.moves(f"t{topic}", topic, instance=f"ins-{number}")
    found = topics.told(10)
    assert {len(each.names) for each in found.values()} == {2}
    assert sum(each.total.produced for each in found.values()) == 50 * sum(range(20))


def test_what_moved_of_an_instance_that_is_gone_is_not_kept(world):
    topics = Topics(world)
    topics.moves("orders", 1, instance="ins-gone")
    assert topics.told(10) == {}
    assert (world.windows._gathered, world.windows._left) == ({}, {})


class TopicsAgain(Topics):
    """Topics stay on the list, and move on while they are taken, as busy ones do."""

    def take(self, most):
        found, self.now = self.now[:most], self.now[most:]
        self.now += found
        return found


def test_a_topic_is_counted_once_in_a_window_however_long_its_list_gets_meanwhile(world):
    topics = TopicsAgain(world)
    for number in range(500):
        topics.moves(f"t{number}", 1000 if number < 100 else 1)
    found = topics.told(10)["ins-0"]
    assert found.total == (100_400, 0)
    assert {found.of(f"t{number}") for number in range(100)} == {(1000, 0)}


def test_of_a_report_that_was_dropped_nothing_is_called_known_that_may_be_among_the_others(world):
    topics = Topics(world)
    for number in range(600):
        topics.moves(f"t{number}", 1 if number == 5 else 10)
    for _ in (steps := topics.steps(10)):
        if not topics.now:
            break
    steps.close()
    topics.moves("t5", 1_000)
    found = topics.told(20)["ins-0"]
    assert found.total == (5_990 + 1 + 1_000, 0)
    assert found.of("t5") is None, "a byte of it was among the others"


def test_after_each_instance_of_which_topics_are_left_out_others_have_their_turn():
    many = World(count=10)
    topics = Topics(many)
    for number in range(2 * MOST_NAMED):
        for instance in range(10):
            topics.moves(f"t{number}", 1, instance=f"ins-{instance}")
    before = sum(1 for _ in topics.steps(10))
    for number in range(2 * MOST_NAMED + 20):
        for instance in range(10):
            topics.moves(f"t{number}", 1, instance=f"ins-{instance}")
    after = sum(1 for _ in topics.steps(20))
    assert after >= before + 1 + 10
