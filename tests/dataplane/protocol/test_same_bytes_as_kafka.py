"""Golden bytes that Kafka 3.9.2 itself wrote (`tests/conformance/golden_protocol.py`): we write and read the same."""

import json
from pathlib import Path

import pytest

from dataplane.protocol.api import OWN
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.schema import message_info
from tests.dataplane.protocol.kafka_json import from_json, to_json
from tests.dataplane.protocol.kio_twins import twin
from tests.dataplane.protocol.strategies import all_messages

GOLDEN = Path(__file__).parents[2] / "golden" / "protocol"
KAFKAS = [(cls, version) for cls, version in all_messages() if message_info(cls).api_key not in OWN]
MESSAGES = {cls.__name__: cls for cls, _ in KAFKAS}


def read_golden(name):
    """(version, value in Kafka's JSON, bytes) for each pair of lines."""
    version = None
    lines = iter((GOLDEN / f"{name}.txt").read_text(encoding="utf-8").split("\n")[:-1])
    for line in lines:
        if line.startswith("v"):
            version = int(line[1:])
        else:
            yield version, json.loads(line), bytes.fromhex(next(lines))


@pytest.mark.parametrize("name", MESSAGES)
def test_we_write_what_kafka_writes(name):
    for version, value, data in read_golden(name):
        assert encode(from_json(MESSAGES[name], version, value), version).hex() == data.hex(), f"v{version} {value}"


@pytest.mark.parametrize("name", MESSAGES)
def test_we_read_what_kafka_writes(name):
    for version, value, data in read_golden(name):
        message = decode(MESSAGES[name], version, data)
        assert message == from_json(MESSAGES[name], version, value), f"v{version} {value}"
        assert to_json(message, version) == value


def test_every_message_and_version_has_an_oracle():
    golden = {(name, version) for name in MESSAGES for version, _, _ in read_golden(name)}
    alone = [
        (cls.__name__, version)
        for cls, version in KAFKAS
        if (cls.__name__, version) not in golden and twin(cls, version) is None
    ]
    assert alone == []


def test_every_version_that_kafka_wrote_is_declared():
    for name, cls in MESSAGES.items():
        assert all(version in message_info(cls).versions for version, _, _ in read_golden(name))
