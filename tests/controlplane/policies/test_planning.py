"""What a plan comes to: the fewest steps by which something goes, whom it costs, and whom it spares."""

from __future__ import annotations

import pytest

from controlplane.core.errors import ClusterUnavailable
from controlplane.policies.planning import Seen, Step, plan_of, some
from controlplane.policies.rules import MINUTE_MS, Extent, Kept, Loss, Rule

DAY_MS = 24 * 60 * MINUTE_MS
RULE = Rule("retention", step_percent=50, floor_minutes=60)
SPARING = Rule("retention", step_percent=50, floor_minutes=60, spare_unread=True)


class Cluster:
    """Partitions by topic; `ages_ms` of the records of each from the first on. Counts the questions."""

    def __init__(self, **ages_ms):
        self.ages_ms, self.asked, self.measured = ages_ms, 0, []

    def seen(self, *, kept=None, **committed):
        return Seen(
            kept or dict.fromkeys(self.ages_ms, Kept(8 * DAY_MS, None)),
            {(name, 0): Extent(0, len(ages)) for name, ages in self.ages_ms.items()},
            {group: {(topic, 0): at for topic, at in places.items()} for group, places in committed.items()},
        )

    def ask(self, retentions):
        self.asked += 1
        return {
            place: next((n for n, age in enumerate(self.ages_ms[place[0]]) if age <= retention_ms), None)
            for place, retention_ms in retentions.items()
        }

    def measure(self, places):
        self.measured += places
        return dict.fromkeys(places, 1000)


def test_as_many_steps_are_taken_as_it_takes_and_no_more():
    cluster = Cluster(orders=[1.5 * DAY_MS, 0.1 * DAY_MS])
    plan = plan_of(cluster.seen(), RULE, cluster.ask)
    assert (plan.steps, plan.records, plan.problem) == (3, 1, "")  # 8, 4, 2, 1 days
    assert plan.topics == {"orders": Step(None, 8 * DAY_MS, DAY_MS)}
    assert cluster.asked <= 6


def test_one_step_where_one_suffices():
    cluster = Cluster(orders=[7 * DAY_MS, 6 * DAY_MS, 1])
    assert plan_of(cluster.seen(), RULE, cluster.ask).steps == 1


def test_who_loses_what_is_said_with_its_size():
    cluster = Cluster(orders=[7 * DAY_MS, 6 * DAY_MS, 1, 1])
    plan = plan_of(cluster.seen(behind={"orders": 1}, ahead={"orders": 2}), RULE, cluster.ask, cluster.measure)
    assert plan.losses == (Loss("behind", "orders", 1, 250),)
    assert cluster.measured == [("orders", 0)]


def test_where_nobody_loses_anything_no_sizes_are_asked_for():
    cluster = Cluster(orders=[7 * DAY_MS, 1])
    assert plan_of(cluster.seen(ahead={"orders": 1}), RULE, cluster.ask, cluster.measure).losses == ()
    assert cluster.measured == []


def test_a_topic_that_a_group_has_still_to_read_is_spared_and_others_are_not():
    cluster = Cluster(orders=[7 * DAY_MS, 1], logs=[1.5 * DAY_MS, 1])
    plan = plan_of(cluster.seen(behind={"orders": 0}), SPARING, cluster.ask)
    assert (plan.spared, set(plan.topics), plan.losses) == (("orders",), {"logs"}, ())
    assert plan.steps == 3


def test_where_all_is_unread_nothing_is_shortened():
    cluster = Cluster(orders=[7 * DAY_MS], logs=[6 * DAY_MS])
    plan = plan_of(cluster.seen(behind={"orders": 0}, late={"logs": 0}), SPARING, cluster.ask)
    assert plan.topics == {}
    assert "still to be read by groups" in plan.problem
    assert "logs, orders" in plan.problem


def test_without_that_word_they_lose_it():
    cluster = Cluster(orders=[7 * DAY_MS])
    assert plan_of(cluster.seen(behind={"orders": 0}), RULE, cluster.ask).losses == (Loss("behind", "orders", 1),)


def test_where_even_the_floor_frees_nothing_retention_stays():
    cluster = Cluster(orders=[30 * MINUTE_MS, 1])
    plan = plan_of(cluster.seen(), RULE, cluster.ask)
    assert plan.topics == {}
    assert "younger than the floor of 60 min" in plan.problem


def test_a_topic_whose_leader_has_gone_meanwhile_is_left_alone():
    cluster = Cluster(orders=[7 * DAY_MS], logs=[7 * DAY_MS])

    def ask(retentions):
        return {place: cut for place, cut in cluster.ask(retentions).items() if place[0] != "orders"}

    plan = plan_of(cluster.seen(behind={"orders": 0}), SPARING, ask)
    assert set(plan.topics) == {"logs"}


def test_where_all_leaders_have_gone_nothing_is_said():
    cluster = Cluster(orders=[7 * DAY_MS, 1], logs=[1])

    def ask(retentions):
        return {place: cut for place, cut in cluster.ask(retentions).items() if cluster.asked < 2}

    with pytest.raises(ClusterUnavailable):
        plan_of(cluster.seen(), RULE, ask)


def test_without_a_topic_nobody_is_asked():
    cluster = Cluster()
    assert "no topic deletes by age" in plan_of(Seen(), RULE, cluster.ask).problem
    assert cluster.asked == 0


def test_a_topics_own_setting_is_in_the_plan():
    cluster = Cluster(orders=[7 * DAY_MS], logs=[1])
    kept = {"orders": Kept(8 * DAY_MS, 8 * DAY_MS), "logs": Kept(61 * MINUTE_MS, 61 * MINUTE_MS)}
    plan = plan_of(cluster.seen(kept=kept), RULE, cluster.ask)
    assert plan.topics == {
        "orders": Step(8 * DAY_MS, 8 * DAY_MS, 4 * DAY_MS),
        "logs": Step(61 * MINUTE_MS, 61 * MINUTE_MS, 60 * MINUTE_MS),
    }


@pytest.mark.parametrize(("names", "text"), [([], ""), (["a", "b"], "a, b"), (list("abcdefg"), "a, b, c, d, e, … (7)")])
def test_the_first_few_names(names, text):
    assert some(names) == text
