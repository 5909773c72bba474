"""Purchases that come at once do not share the last room, and changes do not share the last of a cap."""

from __future__ import annotations

import pytest

from tests.support.django_process import answer_of


@pytest.mark.timeout(180)
def test_what_comes_at_once_is_counted_one_after_the_other(tmp_path, database_url):
    found = answer_of("tests.controlplane.admission.at_once", tmp_path, database_url, within_s=110)
    assert found["bought"] == [[202, None]] * 3 + [[409, "cluster_full"]] * 5
    assert found["grown"] == [[202, None]] + [[409, "organisation_cap"]] * 2
    assert found["storage"] == [10, 10, 30]
