"""kcat, the command line's Kafka client, against a tenant's port. Skipped where it is not installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.integration.clients import create_topic
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

KCAT = shutil.which("kcat")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(KCAT is None, reason="kcat is not installed (Debian and Ubuntu: apt-get install kcat)"),
]

LINES = [f"line {number}" for number in range(2000)]
KEYED = "\n".join(f"{number}:{line}" for number, line in enumerate(LINES))  # so that all partitions get some


def kcat(tenant, *arguments, stdin="") -> str:
    done = subprocess.run(
        [KCAT, "-b", tenant.bootstrap, *arguments], input=stdin, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def filled(tenant):
    create_topic(tenant, "orders", 4)
    kcat(tenant, "-P", "-t", "orders", "-K", ":", "-X", "acks=all", "-X", "enable.idempotence=true", stdin=KEYED)
    return tenant


def test_what_kcat_produces_it_consumes(filled):
    found = kcat(filled, "-C", "-t", "orders", "-o", "beginning", "-e", "-q")
    assert sorted(found.splitlines()) == sorted(LINES)


def test_metadata_are_the_tenants(filled):
    found = json.loads(kcat(filled, "-L", "-J"))
    assert [topic["topic"] for topic in found["topics"]] == ["orders"]
    assert {broker["name"] for broker in found["brokers"]} == set(filled.bootstrap.split(","))
    assert [len(partition["isrs"]) for partition in found["topics"][0]["partitions"]] == [3] * 4


def test_offsets_are_found_by_time(filled):
    begin, end = (kcat(filled, "-Q", "-t", f"orders:0:{time}").strip() for time in (-2, -1))
    assert begin == "orders [0] offset 0"
    assert int(end.removeprefix("orders [0] offset ")) > 0


def test_a_group_of_two_reads_everything_once(tenant, tmp_path: Path):
    create_topic(tenant, "orders", 4)
    outputs = [tmp_path / "one", tmp_path / "two"]
    errors = [path.with_suffix(".err") for path in outputs]

    def partitions_of(path: Path) -> int:
        """From what kcat says of its last assignment: `% Group g rebalanced (…): assigned: orders [0], orders [1]`."""
        said = [line for line in path.read_text().splitlines() if "assigned:" in line]
        return said[-1].count("orders [") if said else 0

    with ExitStack() as stack:
        members = []
        for output, error in zip(outputs, errors, strict=True):
            command = [KCAT, "-b", tenant.bootstrap, "-u", "-X", "auto.offset.reset=earliest", "-f", "%p %o %s\n"]
            process = subprocess.Popen(
                [*command, "-G", "billing", "orders"],
                stdout=stack.enter_context(output.open("w")),
                stderr=stack.enter_context(error.open("w")),
            )
            stack.callback(process.wait, 10)
            stack.callback(process.terminate)
            members.append(process)
        wait_for(lambda: [partitions_of(path) for path in errors] == [2, 2], 40, "two members with two partitions each")
        kcat(tenant, "-P", "-t", "orders", "-K", ":", "-X", "acks=all", stdin=KEYED)
        wait_for(lambda: sum(len(path.read_text().splitlines()) for path in outputs) >= 2000, 20, "all lines")
    read = [path.read_text().splitlines() for path in outputs]
    assert all(read)
    print("kcat:", [len(lines) for lines in read])
    assert sorted(line.split(" ", 2)[2] for lines in read for line in lines) == sorted(LINES)
