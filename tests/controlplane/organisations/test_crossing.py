"""Whoever changes an organisation's members or its single sign-on takes locks in one order: no two wait for each other."""

from __future__ import annotations

import pytest

from tests.support.django_process import answer_of

MAY_BE = {"200", "204", "401", "403", "409", "organisation_deleting", "not_found", "sso_changed"}
"""Done, or refused with the reason. A deadlock that the database has ended is 500, or an ``OperationalError`` of a service."""


@pytest.mark.timeout(300)
def test_no_two_wait_for_each_other(tmp_path, database_url):
    found = answer_of("tests.controlplane.organisations.crossing", tmp_path, database_url, within_s=270)
    assert len(found) == 8
    assert {name: answers for name, answers in found.items() if not set(answers) <= MAY_BE} == {}
    for name, (first, second) in found.items():
        assert {first, second} & {"200", "204"}, f"{name}: {first}, {second}"
