"""Loads as tenants set them up: the real runner starts the real program, which reads real brokers on the tenant's behalf.

The rows are in the test's database; the cluster knows the instance by its specification in ZooKeeper.
"""

from __future__ import annotations

import time

import pytest

from controlplane.clusters.coordination import LiveBroker
from controlplane.clusters.identification import Identification
from controlplane.instances.models import InstanceState
from controlplane.loads import running as runs
from controlplane.loads.models import LoadRun, RunState
from controlplane.loads.ranges import Asked
from controlplane.loads.runner import Runner
from controlplane.loads.serializers import reason_of
from controlplane.loads.services import run_ask
from controlplane.stack.metering import absence
from quota.contracts.identity import credential
from quota.contracts.instance import MIB, Limits
from tests.controlplane.conftest import alice  # noqa: F401  # a fixture
from tests.controlplane.loads.rows import LONG_AGO, load_row
from tests.controlplane.rows import instance_row
from tests.integration.clients import Sender, create_topic, delete_topic
from tests.support.processes import HOST, SECRET

from .world import running

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),  # once, when Delta and Spark's Kafka source must be fetched first; a minute without
    pytest.mark.skipif(bool(absence()), reason=absence() or "-"),
]
