"""Whatever bytes arrive: every decoder gives a message or its one kind of error.

The first byte of an input says which decoder. What was decoded is held to more: messages come back when they are encoded,
batches that pass full validation can be read and converted down, old message sets that are taken become batches that pass.
CRCs and lengths are put right first, or nothing would get past them; and three of four new inputs are old ones bent by what
they are (`mutate`), the fourth is bytes altered blindly.

    python tests/fuzz/fuzz_decoders.py CORPUS… [libFuzzer's options]      run by tests.fuzz
"""

from __future__ import annotations

import math
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from random import Random

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["dataplane"]):
    from dataplane.protocol.codec import decoder, encode, limited_decoder
    from dataplane.protocol.headers import parse_request_header
    from dataplane.protocol.primitives import DecodeError
    from dataplane.records.batch import read_records
    from dataplane.records.control import read_marker
    from dataplane.records.down_conversion import Converted, down_convert
    from dataplane.records.header import HEADER_SIZE, CorruptBatchError, check_batch, read_header, split_batches
    from dataplane.records.legacy import read_message_set, read_shallow, write_message
    from dataplane.records.preparation import FOREVER, Rules, prepare_batch, prepare_messages
    from dataplane.records.scan import find_time
    from dataplane.records.steps import run_through
    from quota.contracts.namespace import ClusterNames

from tests.dataplane.protocol.strategies import all_messages
from tests.fuzz import planted, seeds
from tests.fuzz.bending import bent_batch, bent_message_set, repaired_batch, repaired_message_set
from tests.fuzz.bounded import bounded
from tests.fuzz.declared import bent_bytes

MESSAGES = list(all_messages())
NAMES = ClusterNames()
LIMIT = 100_000
NOW = 1_700_000_000_000
FULL = Rules(full=True)
STRICT = Rules(codec=3, before_max_ms=1000, after_max_ms=FOREVER, needs_keys=True)
_decoders: dict[int, object] = {}


def fuzz_message(data: bytes) -> None:
    """A message of any kind and version, and back again; the decoder that counts elements says the same."""
    if len(data) < 2:
        return
    number = int.from_bytes(data[:2]) % len(MESSAGES)
    cls, version = MESSAGES[number]
    decode = _decoders.get(number)
    if decode is None:  # they are written at run time, so they are instrumented then: it takes a while to have them all
        decode = _decoders[number] = atheris.instrument_func(decoder(cls, version))
    message = decoded(decode, data[2:])
    limited = decoded(limited_decoder(cls, version), data[2:])
    assert limited is None or same(limited, message), (limited, message)  # None: longer than is taken from a stranger
    if message is not None:
        again = decoded(decode, encode(message, version))
        assert same(again, message), (message, again)


def decoded(decode: object, data: bytes) -> object:
    """The message, or None."""
    try:
        message, position = decode(memoryview(data), 0, NAMES)
    except DecodeError:
        return None
    assert position <= len(data), (position, message)
    return message


def same(one: object, other: object) -> bool:
    """Whether they say the same; what is not a number is not equal to itself."""
    return one == other or "nan" in repr(one)


def fuzz_header(data: bytes) -> None:
    """The header of a request."""
    with suppress(DecodeError):
        parse_request_header(memoryview(data))


def fuzz_batch(data: bytes) -> None:
    """A batch of magic 2, from a producer and as it is stored."""
    with suppress(CorruptBatchError):
        split_batches(data)
    with suppress(CorruptBatchError):
        read_marker(data)
    if len(data) < HEADER_SIZE:
        return
    batch = repaired_batch(data)
    view = memoryview(bytearray(batch))
    header = read_header(view)
    with suppress(CorruptBatchError):
        find_time(view[HEADER_SIZE:], 0, min(header.count, 1000), 5, 1)
    for magic in (0, 1):
        with suppress(CorruptBatchError):
            run_through(down_convert(view, magic, Converted(header.base_offset, LIMIT, at_least_one=True)))
    if check_batch(view, header, LIMIT):
        return
    with suppress(CorruptBatchError):
        run_through(prepare_batch(memoryview(bytearray(batch)), header, STRICT, NOW))
    try:
        made = run_through(prepare_batch(view, header, FULL, NOW))
    except CorruptBatchError:
        return
    good = read_header(made)
    assert not check_batch(made, good, LIMIT)
    try:
        records = read_records(made)
    except CorruptBatchError as error:
        if "utf-8" not in str(error):  # the name of a header, which nobody has to read
            raise AssertionError from error
    else:
        assert [record.offset for record in records] == [good.base_offset + n for n in range(good.count)]
    if not good.is_control and good.compression != 4:
        converted = Converted(good.base_offset, math.inf, at_least_one=True)  # type: ignore[arg-type]
        run_through(down_convert(made, 1, converted))
        assert converted.next_offset >= good.next_offset


def fuzz_message_set(data: bytes) -> None:
    """A message set of format 0 or 1."""
    check_message_set(data)
    check_message_set(repaired_message_set(data))


def fuzz_wrapper(data: bytes) -> None:
    """A wrapper with any codec around any bytes."""
    if len(data) < 2:
        return
    magic, codec = data[0] & 1, data[1] & 7
    for inside in (data[2:], repaired_message_set(data[2:])):
        check_message_set(write_message(magic, 5, 7, None, inside, codec | (data[1] & 8 if magic else 0)))


def check_message_set(data: bytes) -> None:
    """To read, and to take from a producer."""
    with suppress(CorruptBatchError):
        list(read_shallow(data))
    with suppress(CorruptBatchError):
        read_message_set(data, LIMIT)
    for rules in (FULL, STRICT):
        with suppress(CorruptBatchError):
            made = run_through(prepare_messages(memoryview(data), rules, NOW, LIMIT))
            if made is not None:
                header = read_header(made)
                assert not check_batch(made, header, 2**31)
                assert len(read_records(made)) == header.count


KINDS = (fuzz_message, fuzz_message, fuzz_header, fuzz_batch, fuzz_message_set, fuzz_wrapper)


def one_input(data: bytes) -> None:
    """One input of the fuzzer."""
    if data:
        KINDS[data[0] % len(KINDS)](data[1:])


def mutate(data: bytes, max_size: int, seed: int) -> bytes:
    """Another input of the same kind, now and then of any kind."""
    random = Random(seed)
    if len(data) < 4 or random.random() < 0.25:
        return atheris.Mutate(data, max_size)
    kind = data[0] % len(KINDS)
    if KINDS[kind] is fuzz_message:
        number = int.from_bytes(data[1:3]) % len(MESSAGES)
        if random.random() < 0.2:
            return data[:3] + atheris.Mutate(data[3:], max_size - 3)
        if random.random() < 0.2:
            number = random.randrange(len(MESSAGES))
        new = data[:1] + number.to_bytes(2) + bent_bytes(*MESSAGES[number], data[3:], random)
    elif KINDS[kind] is fuzz_batch:
        new = data[:1] + bent_batch(data[1:], random, atheris.Mutate)
    elif KINDS[kind] is fuzz_message_set:
        new = data[:1] + bent_message_set(data[1:], random, atheris.Mutate)
    elif KINDS[kind] is fuzz_wrapper:
        head = bytes((random.getrandbits(8), random.getrandbits(8))) if random.random() < 0.3 else data[1:3]
        new = data[:1] + head + bent_message_set(data[3:], random, atheris.Mutate)
    else:
        new = data[:1] + atheris.Mutate(data[1:], max_size - 1)
    return new[:max_size]


def write_seeds(folder: Path) -> None:
    """The first corpus."""
    numbers = {each: number for number, each in enumerate(MESSAGES)}
    made = [b"\0" + numbers[cls, version].to_bytes(2) + data for cls, version, data in seeds.golden()]
    made += [b"\2" + key.to_bytes(2) + version.to_bytes(2) + bytes(6) + body for key, version, body in seeds.requests()]
    made += [b"\3" + batch for batch in seeds.batches()]
    made += [b"\4" + message_set for message_set in seeds.message_sets()]
    made += [
        bytes((5, magic, codec)) + message_set
        for magic in (0, 1)
        for codec in range(5)
        for message_set in seeds.message_sets()
    ]
    for data in made:
        (folder / f"{zlib.crc32(data):08x}").write_bytes(data)


if __name__ == "__main__":
    planted.take(sys.argv)
    atheris.Setup(sys.argv, bounded(one_input), custom_mutator=mutate)
    atheris.Fuzz()
