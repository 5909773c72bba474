"""The service's own clock, held: requests, workers and beat see the moment that a test says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from controlplane.core.clock import SystemClock
from tests.controlplane.conftest import run_to_the_end

if TYPE_CHECKING:
    import pytest

    from controlplane.core.models import Operation

BEGIN = datetime(2026, 4, 1, 10, 20, tzinfo=UTC)


class Passing:
    """`now` is what everybody sees."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, now: datetime = BEGIN) -> None:
        self.now = now
        monkeypatch.setattr(SystemClock, "now", lambda _self: self.now)

    def to(self, *moment: int) -> None:
        """`to(2026, 5, 1, 10)`."""
        self.now = datetime(*moment, tzinfo=UTC)  # type: ignore[misc,arg-type]

    def on(self, **members: float) -> None:
        """`on(days=3)`."""
        self.now += timedelta(**members)

    def done(self, answer) -> Operation:  # type: ignore[no-untyped-def]
        """What the answer of a call has begun, to its end."""
        assert answer.status_code == 202, answer.content
        return run_to_the_end(answer.json()["operation_id"])
