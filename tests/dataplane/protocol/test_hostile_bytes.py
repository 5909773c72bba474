"""Whatever bytes arrive: a message or DecodeError, soon, and in memory that the bytes justify."""

import random
import time
import tracemalloc

import pytest

from dataplane.protocol.api import APIS
from dataplane.protocol.codec import decode, decoder
from dataplane.protocol.headers import parse_request_header
from dataplane.protocol.primitives import DecodeError
from tests.dataplane.protocol.test_same_bytes_as_kafka import MESSAGES, read_golden

HUGE = (b"\x7f\xff\xff\xff", b"\x7f\xff", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f")
NEGATIVE = (b"\x80\x00\x00\x00", b"\xff\xff\xff\xfe", b"\xff\xfe", b"\x80\x00")
NONSENSE_VARINTS = (b"\xff" * 5, b"\x80" * 5, b"\xff" * 10)


def survives(cls, version, data):
    """Whether it was a message after all; anything but DecodeError escapes and fails the test."""
    try:
        decode(cls, version, memoryview(data))
    except DecodeError:
        return False
    return True


def small_examples(name):
    return [(version, data) for version, _, data in read_golden(name) if len(data) <= 300]


@pytest.mark.parametrize("name", MESSAGES)
def test_no_beginning_of_a_message_is_a_message(name):
    for version, data in small_examples(name):
        for size in range(len(data)):
            assert not survives(MESSAGES[name], version, data[:size]), f"v{version} cut at {size} of {data.hex()}"


@pytest.mark.parametrize("name", MESSAGES)
def test_a_lie_at_any_place_is_refused_or_harmless(name):
    for version, data in small_examples(name)[-4:]:
        for position in range(0, len(data), 1 + len(data) // 60):
            for lie in HUGE + NEGATIVE + NONSENSE_VARINTS:
                survives(MESSAGES[name], version, data[:position] + lie + data[position + len(lie) :])
                survives(MESSAGES[name], version, data[:position] + lie + data[position:])


@pytest.mark.parametrize("name", MESSAGES)
def test_random_damage_is_refused_or_harmless(name):
    dice = random.Random(name)
    for version, data in small_examples(name):
        for _ in range(40):
            damaged = bytearray(data)
            for _ in range(dice.choice((1, 1, 2, 5))):
                if damaged:
                    damaged[dice.randrange(len(damaged))] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
            survives(MESSAGES[name], version, bytes(damaged))
        survives(MESSAGES[name], version, dice.randbytes(200))


def test_random_headers_are_refused_or_harmless():
    dice = random.Random(7)
    for _ in range(5000):
        key = dice.choice((*APIS, 99, -1)) & 0xFFFF
        frame = key.to_bytes(2, "big") + b"\x00" + dice.randbytes(1 + dice.randrange(30))
        try:
            header = parse_request_header(memoryview(frame))
        except DecodeError:
            continue
        assert 8 <= header.position <= len(frame)


@pytest.mark.parametrize("lie", HUGE)
@pytest.mark.parametrize("name", MESSAGES)
def test_a_lying_count_costs_no_memory(name, lie):
    for version, data in small_examples(name)[-2:]:
        decoder(MESSAGES[name], version)  # generating it is not what is measured
        padding = bytes(2000)
        hostile = [data[:at] + lie + data[at + len(lie) :] + padding for at in range(0, len(data), 1 + len(data) // 20)]
        tracemalloc.start()
        try:
            for attempt in hostile:
                survives(MESSAGES[name], version, attempt)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 200 * (len(data) + len(padding)), f"v{version}"


def test_the_longest_message_of_nothing_takes_linear_time():
    """A million bytes that each look like one more empty element, tag or level."""
    began = time.process_time()
    for fill in (b"\x00", b"\x01", b"\x02", b"\x7f", b"\xff"):
        for key in (0, 1, 3, 9, 20):
            api = APIS[key]
            survives(api.request, api.versions.high, fill * 300_000)
            survives(api.request, api.versions.high, b"\x00\x00\x00\x02" + b"\xff\xff\x03" + fill * 300_000)
    assert time.process_time() - began < 20
