"""Routes by REST, with whatever becomes of them."""

from __future__ import annotations

import pytest

from tests.controlplane.conftest import run_to_the_end


@pytest.fixture
def url(instance):
    return f"/api/v1/instances/{instance.id}/routes"


@pytest.fixture
def opened(alice, url):
    """`opened(security=...)`: a route that is open, and what REST says of it."""

    def open_one(**members):
        answer = alice.api.post(url, {"security": "plaintext", **members})
        assert answer.status_code == 202, answer.json()
        assert run_to_the_end(answer.json()["operation_id"]).state == "succeeded"
        return alice.api.get(f"{url}/{answer.json()['id']}").json()

    return open_one
