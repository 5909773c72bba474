"""Which jars a start takes from where, and what a session is asked for: no JVM is started here."""

from __future__ import annotations

import socket

import pytest

from controlplane.lake import load
from controlplane.spark import submitted
from controlplane.spark.jars import DELTA, KAFKA_SOURCE, fetched, note_fetched, spark_jars
from controlplane.spark.session import Setup, options

LAKE = (KAFKA_SOURCE, DELTA)


@pytest.fixture
def home(tmp_path):
    """With what Ivy leaves: jars by organisation and name, one of which Spark has itself."""
    folder = tmp_path / "ivy" / "jars"
    folder.mkdir(parents=True)
    for name in ("io.delta_delta-spark_2.13-4.0.0.jar", f"org.slf4j_{spark_jars()[0].name}"):
        (folder / name).touch()
    return tmp_path


def test_jars_are_taken_from_the_disk_once_all_have_arrived(home):
    assert fetched(home, LAKE) == []
    note_fetched(home, LAKE)
    assert [jar.name for jar in fetched(home, LAKE)] == ["io.delta_delta-spark_2.13-4.0.0.jar"]
    assert fetched(home, (KAFKA_SOURCE,)) == [], "what one program needs is not what the other one has fetched"
    (home / "ivy" / "jars" / "io.delta_delta-spark_2.13-4.0.0.jar").unlink()
    assert fetched(home, LAKE) == []


def test_a_start_without_jars_asks_maven_and_one_with_them_does_not(home):
    setup = Setup("test", home, "local[1]", LAKE)
    before = options(setup)
    assert before["spark.jars.packages"] == ",".join(LAKE)
    note_fetched(home, LAKE)
    after = options(setup)
    assert "spark.jars.packages" not in after
    assert after["spark.driver.extraClassPath"].endswith("io.delta_delta-spark_2.13-4.0.0.jar")


@pytest.mark.parametrize(
    ("master", "is_local"),
    [("local", True), ("local[2]", True), ("local-cluster[2,1,1024]", False), ("spark://there:7077", False)],
)
def test_only_threads_of_one_machine_are_local(master, is_local, tmp_path):
    found = load.setup({"SLUICE_STACK_DIR": str(tmp_path), "SPARK_MASTER": master})
    assert found.is_local is is_local
    wanted = {"spark.sql.extensions", "spark.sql.catalog.spark_catalog"}
    assert (set(found.options) == wanted) is not is_local, "a cluster is asked for what Delta needs, and nothing else"
    assert ("spark.driver.host" in options(found)) is is_local


def test_defaults_are_asked_for_below_what_is_wanted(tmp_path):
    setup = Setup("test", tmp_path, "local[1]", options={"a": "wanted"}, defaults={"a": "usual", "b": "usual"})
    assert {name: options(setup)[name] for name in ("a", "b")} == {"a": "wanted", "b": "usual"}


def test_the_jvm_of_spark_submit_is_lost_when_nobody_answers_for_it_any_more(monkeypatch):
    assert not submitted.is_lost(), "nobody has submitted this"
    with socket.create_server(("127.0.0.1", 0)) as gateway:
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", str(gateway.getsockname()[1]))
        assert not submitted.is_lost()
    assert submitted.is_lost()
