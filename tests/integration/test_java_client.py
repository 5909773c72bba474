"""The Java client against a tenant's port. It is fetched from Maven Central, where there is a `mvn`; else a skip."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integration.clients import read_all

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

SOURCE = Path(__file__).parent / "java"
UNREACHABLE = re.compile("Could not (resolve|transfer)|Unknown host|Non-resolvable|Connection refused|timed out")


@pytest.fixture(scope="session")
def classpath(tmp_path_factory) -> str:
    """The compiled program and its jars, which stay where Maven keeps them."""
    for program in ("mvn", "java", "javac"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no `{program}`: the Java client is tested where Maven and a JDK are installed")
    target = tmp_path_factory.mktemp("java")
    goals = ["compile", "dependency:build-classpath", f"-Dmdep.outputFile={target}/classpath"]
    done = subprocess.run(
        ["mvn", "-q", "-B", "-f", str(SOURCE / "pom.xml"), f"-Dtarget={target}", *goals],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode and UNREACHABLE.search(done.stdout):
        pytest.skip(f"Maven Central does not answer: {done.stdout[-300:]}")
    assert done.returncode == 0, done.stdout[-3000:]
    return f"{target}/classes:{(target / 'classpath').read_text().strip()}"


def test_a_java_application_produces_and_reads_with_a_group_of_two(classpath, tenant):
    done = subprocess.run(
        [
            "java",
            "-Xmx192m",
            "-XX:+UseSerialGC",
            "-cp",
            classpath,
            "TenantClient",
            tenant.bootstrap,
            "flights",
            "4",
            "20000",
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    print("java:", found, done.stderr[-1000:])
    assert found["cluster"] == tenant.id
    assert found["topics"] == 1
    assert found["held"] == [2, 2]
    assert sum(found["read"]) == found["distinct"] == found["committed"] == 20_000
    assert min(found["read"]) > 0
    assert found["doubled"] == 0
    values = [value for part in read_all(tenant, "flights").values() for value in part]
    assert sorted(values) == sorted(b"value-%d" % number for number in range(20_000))
