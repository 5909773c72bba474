"""One Spark session for all tests of the job, and a SQLite file with the two tables as Django makes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connections
from django.db.backends.sqlite3.base import DatabaseWrapper

from controlplane.metering.models import PipelineStatus, UsageMaximum
from controlplane.metering.pipeline import session
from controlplane.metering.pipeline.settings import Settings


@pytest.fixture(scope="session")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="session")
def spark(home):
    settings = Settings.read({"SLUICE_STACK_DIR": str(home), "SPARK_MASTER": "local[1]"})
    opened = session.open_session(settings, with_kafka=False)
    yield opened
    session.close_session(opened)


@pytest.fixture
def database_file(tmp_path, django_db_blocker) -> Path:
    """Made from the models themselves, beside the test database: the job opens a file by its name."""
    path = tmp_path / "usage.sqlite3"
    wrapper = DatabaseWrapper({**connections["default"].settings_dict, "NAME": str(path)}, alias="usage")
    connections["usage"] = wrapper  # the editor's transaction looks it up by its alias
    try:
        with django_db_blocker.unblock(), wrapper.schema_editor() as editor:
            editor.create_model(UsageMaximum)
            editor.create_model(PipelineStatus)
    finally:
        wrapper.close()
        del connections["usage"]
    return path
