"""Grafana's dashboard of an instance asks for what a tenant's Prometheus is told, and shows all of it."""

from __future__ import annotations

import re

import pytest

from controlplane.history.exposition import GroupLag, exposition
from controlplane.history.metrics import METRICS
from controlplane.history.requests.by_broker import Asked
from quota.contracts.topics_moved import TopicsMoved
from tests.support.dashboards import asked, dashboard, overlaps, problems, shape_problems, told, unused

from .conftest import counts_of

BOARD = dashboard("instance")


@pytest.fixture
def text():
    """An exposition with everything in it."""
    requests = counts_of(3, took_us=5_000, waited_us=4_000, errors={"NOT_LEADER_OR_FOLLOWER": 1})
    requests.add(counts_of(2, api="Fetch"))
    topics = TopicsMoved()
    topics.count("orders", 5, 7)
    of_broker = counts_of(3)
    of_broker.carried_windows = 1
    return exposition(
        "ins-k3v9x2qa",
        dict.fromkeys(METRICS, 1.0),
        [GroupLag("billing", 5, 1.5, 900, 60, 120)],
        is_known=True,
        requests=requests,
        topics=topics,
        brokers={1: Asked.of(of_broker)},
    )


def test_every_query_names_a_series_that_is_told_with_its_labels(text):
    assert problems(BOARD, text) == []


def test_everything_that_is_told_is_on_it(text):
    assert unused(BOARD, text) == set()


def test_a_query_of_what_nobody_tells_would_be_found(text):
    less = "\n".join(line for line in text.splitlines() if "sluice_connections" not in line)
    assert problems(BOARD, less) == [
        "Connections: sluice_connections is not told", "Connections: sluice_connections has no label instance_id",
    ]  # fmt: skip


def test_the_instances_to_choose_from_are_those_that_are_told(text):
    (variable,) = [each for each in BOARD["templating"]["list"] if each["name"] == "instance"]
    name, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"]).groups()
    assert label in told(text)[name]
    assert all('instance_id="$instance"' in query for _, query, _ in asked(BOARD))


def test_panels_have_units_descriptions_and_places_of_their_own():
    assert shape_problems(BOARD) == []
    assert overlaps(BOARD) == []
