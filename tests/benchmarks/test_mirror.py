"""What of the mirror's benchmark is no measurement: the moments of kills, the table, MirrorMaker's file."""

import random

import pytest

from tests.benchmarks.mirror import LAST_POINT, _options, kill_points, table
from tests.benchmarks.mirror_copies import TOPIC, MirrorMakerCopy, OurCopy
from tests.support.mirror_maker import properties


class Somewhere:
    bootstrap = "127.0.0.1:1"


def test_kills_are_spread_over_the_way_and_repeat_with_their_seed():
    points = kill_points(20, random.Random("1 there"))
    assert points == sorted(points)
    assert len(set(points)) == 20
    assert all(0 <= point < LAST_POINT for point in points)
    assert points == kill_points(20, random.Random("1 there"))
    assert points != kill_points(20, random.Random("2 there"))


def test_the_table_has_each_way_and_who_is_not_equal():
    figures = {"mb_per_s": 41.2, "cpu_s_per_gb": 20.0, "first_after_s": 1.5}
    killed = {"kills": 20, "seconds": 61.0, "mb_per_s": 3.3, "is_equal": True}
    ways = [
        {"way": "apache-to-sluice", "medians": {"sluice": figures, "mirrormaker": figures}, "killed": killed},
        {"way": "sluice-to-apache", "medians": {"sluice": figures}, "killed": {**killed, "is_equal": False}},
    ]
    lines = table(ways).splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [
        ["apache-to-sluice", "sluice"],
        ["apache-to-sluice", "mirrormaker"],
        ["apache-to-sluice", "killed"],
        ["sluice-to-apache", "sluice"],
        ["sluice-to-apache", "killed"],
    ]
    assert "41.2" in lines[1]
    assert "equal after 61 s" in lines[3]
    assert "DIFFERENT" in lines[5]


def test_mirror_maker_copies_one_way_and_messages_alone():
    found = properties("a:1", "b:2", "old", "orders", 4)
    assert found["clusters"] == "old, old-target"
    assert (found["old.bootstrap.servers"], found["old-target.bootstrap.servers"]) == ("a:1", "b:2")
    assert (found["old->old-target.enabled"], found["old-target->old.enabled"]) == ("true", "false")
    assert found["old->old-target.topics"] == "orders"


@pytest.mark.parametrize("kind", [OurCopy, MirrorMakerCopy])
def test_each_run_has_a_topic_of_its_own(tmp_path, kind):
    copies = [kind(tmp_path, Somewhere, Somewhere, run) for run in ("one", "two")]
    assert [copy.topic for copy in copies] == [f"one.{TOPIC}", f"two.{TOPIC}"]


def test_it_is_small_unless_it_is_asked_for_more():
    options = _options([])
    assert (options.gigabytes, options.kills, options.directory) == (0.2, 5, None)
    assert _options(["--gigabytes", "10", "--kills", "20"]).kills == 20
