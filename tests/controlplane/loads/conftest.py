"""An installation that has places for loads, and a topic to load."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.kafka import topics


@pytest.fixture(autouse=True)
def places(settings):
    settings.ENVIRONMENT = replace(
        settings.ENVIRONMENT, lake_folders="file:/lake", lake_buckets="aws", metering_absent=""
    )


@pytest.fixture
def orders(instance):
    topics.create(instance.cluster.address, instance.id, "orders", partitions=2, replication_factor=1, config={})
    return "orders"
