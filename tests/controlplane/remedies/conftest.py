"""Alice's instance, in which somebody waits, and what brokers say of it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.core.clock import SYSTEM_CLOCK
from tests.controlplane.connections.conftest import hers, his  # noqa: F401  # fixtures
from tests.controlplane.quotas.conftest import record  # noqa: F401  # a fixture


@pytest.fixture
def ago():
    """Milliseconds since 1970 of a moment that many seconds ago."""
    return lambda seconds: int((SYSTEM_CLOCK.now() - timedelta(seconds=seconds)).timestamp() * 1000)
