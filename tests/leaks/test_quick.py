"""The matrix on a simulated cluster, of each API the oldest and the newest version: nothing is found, and all was asked."""

from __future__ import annotations

import pytest

from dataplane.handlers.table import served
from tests.leaks.matrix import CHANGES, PAIRS, REFUSED, UNCHANGED, UNTOUCHED, Matrix
from tests.leaks.tidying import belongings
from tests.leaks.virtual import two_instances

NAMES_NOTHING = {"LIST_GROUPS", "API_VERSIONS", "SASL_HANDSHAKE", "DESCRIBE_CLUSTER"}


@pytest.fixture(scope="module")
def report():
    _, sides = two_instances()
    return Matrix(sides, edges=True).run()


def test_nothing_of_another_tenant_is_told(report):
    assert [(leak.api, leak.version, leak.where, leak.what, leak.foreign, leak.absent) for leak in report.leaks] == []


def test_every_api_that_names_something_was_asked(report):
    asked = {api for (api, phase), cells in report.cells.items() if phase == PAIRS and cells}
    assert asked == {row.api.key.name for row in served(tenant=True)} - NAMES_NOTHING


def test_every_api_that_leaves_no_trace_was_asked_about_ones_own(report):
    names = {row.api.key.name for row in served(tenant=True)} - {key.name for key in CHANGES}
    for phase in (UNCHANGED, UNTOUCHED):
        assert {api for (api, each), cells in report.cells.items() if each == phase and cells} >= names


def test_b_has_something_foreign_of_every_kind(report):
    assert report.nothing_foreign == {}


def test_as_many_cells_as_ever(report):
    assert report.of(PAIRS) > 500
    assert report.of(REFUSED) > 40
    assert report.scanned > 2 * report.of(PAIRS)


def test_both_sides_are_left_as_they_were():
    _, sides = two_instances()
    for side in (sides.a, sides.b):
        side.look()
    before = [belongings(side) for side in (sides.a, sides.b)]
    apis = {"CREATE_TOPICS", "OFFSET_COMMIT", "CREATE_ACLS", "ALTER_CLIENT_QUOTAS", "ALTER_USER_SCRAM_CREDENTIALS"}
    assert Matrix(sides, apis=frozenset(apis), edges=True).run().leaks == []
    assert [belongings(side) for side in (sides.a, sides.b)] == before
