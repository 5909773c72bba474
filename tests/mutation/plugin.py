"""What pytest is given while code is wrong: the same examples every time and few of them, and quick tests before slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, settings

if TYPE_CHECKING:
    import pytest

settings.register_profile(
    "mutation",
    deadline=None,
    derandomize=True,  # what one run catches, the next one does
    max_examples=25,
    database=None,
    phases=(Phase.explicit, Phase.generate),  # nobody reads the smallest example
    suppress_health_check=list(HealthCheck),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test that fails ends the run: those with many examples come last."""
    items.sort(key=lambda item: hasattr(getattr(item, "function", None), "hypothesis"))
