"""What services want to know first."""

from __future__ import annotations

import pytest


@pytest.fixture
def place_of():
    def place(person, instance):
        return {"organisation": person.organisation, "actor": "alice@example.com", "instance_id": instance.id}

    return place
