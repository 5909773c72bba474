"""The Java client against a tenant's port. It is fetched from Maven Central, where there is a `mvn`; else a skip."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.integration.clients import create_topic, produce, read_all
from tests.support.tokens import BY_TOKEN, Issuer
from tests.support.users import LOGS_IN, USERS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

SOURCE = Path(__file__).parent / "java"
UNREACHABLE = re.compile("Could not (resolve|transfer)|Unknown host|Non-resolvable|Connection refused|timed out")


NEWER = "4.3.0"


@pytest.fixture(scope="session")
def classpath(tmp_path_factory) -> str:
    """The compiled program and its jars, which stay where Maven keeps them."""
    return compiled(tmp_path_factory)


@pytest.fixture(scope="session")
def newer_classpath(tmp_path_factory) -> str:
    """The same with Kafka 4's client."""
    return compiled(tmp_path_factory, f"-Dkafka.version={NEWER}")


def compiled(tmp_path_factory, *more: str) -> str:
    """With Maven."""
    for program in ("mvn", "java", "javac"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no `{program}`: the Java client is tested where Maven and a JDK are installed")
    target = tmp_path_factory.mktemp("java")
    goals = ["compile", "dependency:build-classpath", f"-Dmdep.outputFile={target}/classpath"]
    done = subprocess.run(
        ["mvn", "-q", "-B", "-f", str(SOURCE / "pom.xml"), f"-Dtarget={target}", *more, *goals],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode and UNREACHABLE.search(done.stdout):
        pytest.skip(f"Maven Central does not answer: {done.stdout[-300:]}")
    assert done.returncode == 0, done.stdout[-3000:]
    return f"{target}/classes:{(target / 'classpath').read_text().strip()}"


def run(classpath, tenant, topic, count, *settings, properties=()) -> dict:
    """What the program saw, as an application with these settings; `properties` are Java's own."""
    command = [
        "java",
        "-Xmx192m",
        "-XX:+UseSerialGC",
        *(f"-D{each}" for each in properties),
        "-cp",
        classpath,
        "TenantClient",
        tenant.bootstrap,
        topic,
    ]
    done = subprocess.run(
        [*command, "4", str(count), *settings], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    print("java:", done.stdout.splitlines()[-1], done.stderr[-1000:])
    return json.loads(done.stdout.splitlines()[-1])


def test_a_java_application_produces_and_reads_with_a_group_of_two(classpath, tenant):
    found = run(classpath, tenant, "flights", 20_000)
    assert found["cluster"] == tenant.id
    assert found["topics"] == 1
    assert found["held"] == [2, 2]
    assert sum(found["read"]) == found["distinct"] == found["committed"] == 20_000
    assert min(found["read"]) > 0
    assert found["doubled"] == 0
    values = [value for part in read_all(tenant, "flights").values() for value in part]
    assert sorted(values) == sorted(b"value-%d" % number for number in range(20_000))


def test_so_does_one_of_kafka_4_by_the_consumer_protocol(newer_classpath, tenant):
    found = run(newer_classpath, tenant, "flights", 5_000, "group.protocol=consumer")
    assert found["held"] == [2, 2]
    assert sum(found["read"]) == found["distinct"] == found["committed"] == 5_000
    assert found["doubled"] == 0


def moved(classpath, tenant, transactions) -> dict:
    """What `Mover` says of so many transactions of the same producer."""
    command = ["java", "-Xmx192m", "-XX:+UseSerialGC", "-cp", classpath, "Mover"]
    arguments = [tenant.bootstrap, "from", "to", "mover", str(transactions)]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    print("java:", done.stdout.splitlines()[-1], done.stderr[-1000:])
    return json.loads(done.stdout.splitlines()[-1])


def test_a_producer_of_kafka_4_has_another_epoch_for_each_transaction_and_an_older_one_of_the_same_id_has_not(
    classpath, newer_classpath, tenant
):
    create_topic(tenant, "from", 1)
    create_topic(tenant, "to", 1)
    values = [f"value-{number}" for number in range(40)]
    produce(tenant, "from", [value.encode() for value in values])
    first = moved(newer_classpath, tenant, 6)
    assert first["values"] == values[:20], "every third is aborted, and made again"
    assert first["ended"] == first["began"] + 6
    second = moved(classpath, tenant, 3)
    assert second["values"] == values[:30]
    assert second["ended"] == second["began"] > first["ended"]
    third = moved(newer_classpath, tenant, 2)
    assert third["values"] == values
    assert third["ended"] == third["began"] + 2


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_so_does_one_that_logs_in(classpath, new_tenant, mechanism):
    tenant = new_tenant(route=LOGS_IN, users=USERS)
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    login = f'org.apache.kafka.common.security.{module}LoginModule required username="alice" password="pencil";'
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.jaas.config": login}
    found = run(classpath, tenant, "flights", 500, *(f"{name}={value}" for name, value in settings.items()))
    assert found["distinct"] == found["committed"] == 500


def test_so_does_one_that_logs_in_by_a_token(classpath, new_tenant, tmp_path):
    issuer = Issuer()
    tenant = new_tenant(route=BY_TOKEN, token_issuers=issuer.trusted_set())
    place = tmp_path / "token"
    place.write_text(issuer.token("alice", int(time.time()), 3_600, scope="kafka"))
    package = "org.apache.kafka.common.security.oauthbearer"
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": place.as_uri(),
        "sasl.login.callback.handler.class": f"{package}.OAuthBearerLoginCallbackHandler",
        "sasl.jaas.config": f"{package}.OAuthBearerLoginModule required;",
    }
    allowed = f"org.apache.kafka.sasl.oauthbearer.allowed.urls={place.as_uri()}"
    said = (f"{name}={value}" for name, value in settings.items())
    found = run(classpath, tenant, "flights", 500, *said, properties=[allowed])
    assert found["distinct"] == found["committed"] == 500
