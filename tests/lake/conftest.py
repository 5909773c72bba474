"""Brokers and a Spark for loads; who wants others has fixtures of these names itself."""

from __future__ import annotations

import pytest

from .world import running


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    with running(tmp_path_factory.mktemp("lake")) as made:
        yield made


@pytest.fixture
def world(parts):
    parts.new_tenant()
    return parts
