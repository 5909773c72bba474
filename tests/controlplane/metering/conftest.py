"""The people and their instance come from tests/controlplane; here is how usage gets into the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.usage import Row, usage_raise
from tests.support.usage import usage_row as row

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Row", "raised", "row"]


def raised(rows: Iterable[Row]) -> None:
    """Each in a batch of its own."""
    for one in rows:
        usage_raise([one])


@pytest.fixture
def usage(instance):
    """Two hours of alice's instance on two brokers, and a stranger's in between."""
    raised(
        [
            row(instance.id, "2026-05-01T10", 1000, consumed=10, stored=7200, offset=4, partition=3),
            row(instance.id, "2026-05-01T11", 1500, consumed=10, stored=9000, offset=9, partition=3),
            row(instance.id, "2026-05-01T11", 400, boot="b2", broker=2, offset=7, partition=5),
            row("ins-stranger", "2026-05-01T11", 9_999_999),
        ]
    )
    return instance
