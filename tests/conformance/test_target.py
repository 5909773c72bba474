"""The cluster that suites find: what has to be so before the first of them asks."""

from __future__ import annotations

import pytest

from tests.conformance.target import PROFILE_B, OurCluster

pytestmark = pytest.mark.integration


def test_brokers_whose_internal_listeners_ask_nobody_know_each_other(tmp_path):
    """They log in at each other's all the same, each as itself: entering waits until all have heard of all."""
    with OurCluster(tmp_path, PROFILE_B, "internal") as cluster:
        assert cluster.crashed() == []
        assert cluster.complaints() == 0
