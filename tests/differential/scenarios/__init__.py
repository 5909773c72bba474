"""What is asked, one file per family of APIs.

@scenario(ApiKey.LIST_OFFSETS)
def list_offsets(asker: Asker) -> None: …      # run for each version that both brokers have, against each of them

A scenario may use an answer in its next question (a member id), and must ask the same of both brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.protocol.api import ApiKey
    from tests.differential.asking import Asker

    Scenario = Callable[[Asker], None]

SCENARIOS: list[tuple[ApiKey, Scenario]] = []


def scenario(key: ApiKey) -> Callable[[Scenario], Scenario]:
    """Registers a function for every version of an API."""

    def add(function: Scenario) -> Scenario:
        SCENARIOS.append((key, function))
        return function

    return add
