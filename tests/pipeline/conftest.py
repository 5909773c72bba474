"""One Spark session for all tests of the job; SQLite files and PostgreSQL databases with its tables as Django makes them."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import ConnectionHandler

from controlplane.env import Environment
from controlplane.metering.pipeline import session
from controlplane.metering.pipeline.settings import Settings
from tests.support import postgresql
from tests.support.ports import free_port

REPORTED = (
    "clusters.PhysicalCluster",
    "history.Minute", "history.RolledUp", "quotas.RecordedInterval", "quotas.QuotaDay", "quotas.QuotaDayStaged",
)  # fmt: skip
"""Other apps' tables that jobs read and write."""


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
    """Beside the test database: the job opens a file by its name."""
    path = tmp_path / "usage.sqlite3"
    with django_db_blocker.unblock():
        tables_make(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory):
    if not postgresql.is_installed():
        pytest.skip("PostgreSQL is not installed here")
    with postgresql.PostgreSQLServer(tmp_path_factory.mktemp("postgresql"), free_port()) as server:
        server.names = map("usage{}".format, itertools.count())
        yield server


@pytest.fixture(
    params=[pytest.param("sqlite", marks=[pytest.mark.long] if postgresql.is_installed() else []), "postgresql"]
)
def database_url(request, django_db_blocker) -> str:
    """A database with the tables; each test that asks for it runs on either kind, in `make test` on PostgreSQL where it is."""
    if request.param == "sqlite":
        return f"sqlite:///{request.getfixturevalue('database_file')}"
    server = request.getfixturevalue("postgresql_server")
    url = server.database(next(server.names))
    with django_db_blocker.unblock():
        tables_make(url)
    return url


def tables_make(url: str) -> None:
    """From the models themselves."""
    wrapper = wrapper_of(url)
    connections["usage"] = wrapper  # the editor's transaction looks it up by its alias
    try:
        with wrapper.schema_editor() as editor:
            for model in (*apps.get_app_config("metering").get_models(), *map(apps.get_model, REPORTED)):
                editor.create_model(model)
    finally:
        wrapper.close()
        del connections["usage"]


def wrapper_of(url: str) -> BaseDatabaseWrapper:
    """Django's connection to a database."""
    entry = Environment.read({"DATABASE_URL": url}).database()
    return ConnectionHandler({"default": entry, "usage": entry})["usage"]
