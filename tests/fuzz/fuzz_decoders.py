"""Whatever bytes arrive: every decoder gives a message or its one kind of error.

The first byte of an input says which decoder. What was decoded is held to more: messages come back when they are encoded,
batches that pass full validation can be read and converted down, old message sets that are taken become batches that pass.
CRCs and lengths are put right first, or nothing would get past them.

    python tests/fuzz/fuzz_decoders.py CORPUS… [libFuzzer's options]      run by tests.fuzz
"""

from __future__ import annotations

import math
import sys
import zlib
from contextlib import suppress
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["dataplane"]):
    from crc32c import crc32c

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
from tests.fuzz import seeds

MESSAGES = list(all_messages())
NAMES = ClusterNames()
LIMIT = 100_000
NOW = 1_700_000_000_000
FULL = Rules(full=True)
STRICT = Rules(codec=3, before_max_ms=1000, after_max_ms=FOREVER, needs_keys=True)
_decoders: dict[tuple[int, bool], object] = {}


def fuzz_message(data: bytes) -> None:
    """A message of any kind and version, and back again."""
    if len(data) < 3:
        return
    number = int.from_bytes(data[:2]) % len(MESSAGES)
    limited = bool(data[2] & 1)
    cls, version = MESSAGES[number]
    decode = _decoders.get((number, limited))
    if decode is None:
        made = (limited_decoder if limited else decoder)(cls, version)
        decode = _decoders[number, limited] = atheris.instrument_func(made)
    with suppress(DecodeError):
        message, _ = decode(memoryview(data)[3:], 0, NAMES)
        again = decoder(cls, version)(encode(message, version), 0, NAMES)[0]
        assert again == message or "nan" in repr(message), (message, again)


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
    batch = bytearray(data)
    batch[8:12] = (len(batch) - 12).to_bytes(4)
    batch[:8], batch[16] = bytes(8), 2
    batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4)
    view = memoryview(batch)
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
    check_message_set(with_right_crcs(data))


def fuzz_wrapper(data: bytes) -> None:
    """A wrapper with any codec around any bytes."""
    if len(data) < 2:
        return
    magic, codec = data[0] & 1, data[1] & 7
    for inside in (data[2:], with_right_crcs(data[2:])):
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


def with_right_crcs(data: bytes) -> bytes:
    """As far as messages can be told apart."""
    out = bytearray(data)
    position = 0
    while position + 17 <= len(out):
        end = position + 12 + int.from_bytes(out[position + 8 : position + 12])
        if end > len(out) or end < position + 17:
            break
        out[position + 12 : position + 16] = zlib.crc32(out[position + 16 : end]).to_bytes(4)
        position = end
    return bytes(out)


KINDS = (fuzz_message, fuzz_message, fuzz_header, fuzz_batch, fuzz_message_set, fuzz_wrapper)


def one_input(data: bytes) -> None:
    """One input of the fuzzer."""
    if data:
        KINDS[data[0] % len(KINDS)](data[1:])


def write_seeds(folder: Path) -> None:
    """The first corpus."""
    numbers = {each: number for number, each in enumerate(MESSAGES)}
    made = [b"\0" + numbers[cls, version].to_bytes(2) + b"\1" + data for cls, version, data in seeds.golden()]
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
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
