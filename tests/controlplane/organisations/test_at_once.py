"""Purchases and a deletion at once, and two owners who hand over to each other: on real databases, in many threads."""

from __future__ import annotations

import pytest

from tests.support.django_process import answer_of


@pytest.mark.timeout(180)
def test_of_what_comes_at_once_one_comes_first(tmp_path, database_url):
    found = answer_of("tests.controlplane.organisations.at_once", tmp_path, database_url, within_s=150)
    for each in found["deletions"]:
        (deleted,) = [answer for answer in each["answers"] if answer[0] == "delete"]
        bought = [answer for answer in each["answers"] if answer[0] == "buy" and answer[1] == 202]
        assert len(bought) == each["instances"]
        if each["in_use"]:
            assert deleted[1:] == [409, "organisation_in_use"], each
            assert bought, each
        else:
            assert deleted[1] == 200, each
            assert each["instances"] == 0, "nobody has bought into an organisation that is being deleted"
        refused = {tuple(answer[1:]) for answer in each["answers"] if answer[0] == "buy"} - {(202, None)}
        assert refused <= {(401, "organisation_deleting"), (409, "organisation_deleting")}, each
    for each in found["handovers"]:
        assert each["owners"] == 1, each
        assert [200, None] in [answer[1:] for answer in each["answers"]]
