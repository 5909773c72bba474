"""A load into a bucket, with a key of the tenant's: on a store that speaks S3, where one is at hand.

``SLUICE_TEST_S3=http://127.0.0.1:5000`` names it; it has to take the key ``test`` with the secret ``test-secret``, as
``moto_server`` does. Spark's jars for buckets, 600 MB, are fetched at the first run, so this is no part of ``make test``.
"""

from __future__ import annotations

import os
import urllib.request
from dataclasses import replace

import pytest

from controlplane.core.sealed import sealed
from controlplane.loads.models import Load, RunState
from controlplane.loads.ranges import Asked
from tests.controlplane.conftest import alice  # noqa: F401  # a fixture
from tests.controlplane.loads.rows import load_row
from tests.integration.clients import create_topic

from .test_loads_of_tenants import parts, run, world, write  # noqa: F401  # fixtures

STORE = os.environ.get("SLUICE_TEST_S3", "")
BUCKET = "events-of-tests"

pytestmark = [
    pytest.mark.integration,
    pytest.mark.long,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not STORE, reason="SLUICE_TEST_S3 names no store that speaks S3"),
]


@pytest.fixture
def load(world, settings):  # noqa: F811  # the fixture of this name
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, lake_buckets=STORE)
    asked = urllib.request.Request(f"{STORE}/{BUCKET}", method="PUT")  # a store on loopback
    urllib.request.urlopen(asked, timeout=20).close()
    create_topic(world.tenant, "orders", 2, factor=1)
    write(world, "orders", 100)
    return load_row(
        world.instance, kind="bucket", folder="", bucket=BUCKET, path="lake/orders", region="us-east-1", access_key="test",
        secret_key=sealed(Load, "secret_key", b"test-secret", id="load-000000000001"),
    )  # fmt: skip


def test_a_table_in_a_bucket_is_loaded_goes_on_and_is_loaded_again(world, load):  # noqa: F811
    first = run(world, load)
    assert (first.state, first.row_count) == (RunState.SUCCEEDED, 100), first.says
    write(world, "orders", 50)
    assert run(world, load).row_count == 50
    again = run(world, load, Asked(offsets={1: (0, 20)}))
    assert (again.state, again.row_count) == (RunState.SUCCEEDED, 20), again.says


def test_a_bucket_that_is_not_there_is_said_in_time(world, load):  # noqa: F811
    load.bucket = "no-such-bucket-anywhere"
    load.save()
    refused = run(world, load)
    assert refused.state == RunState.FAILED
    assert refused.says.startswith("The specified bucket does not exist"), refused.says
