"""Makes tests/golden/protocol/: what Kafka 3.9.2 itself writes for every message and version that we declare.

    python -m tests.conformance.golden_protocol        (from the project's root; needs `mvn` and Java 17; a minute)

Values are drawn here with a fixed seed, so a second run changes nothing; Kafka's generated classes write them
(`java_oracle/`, fetched by Maven). One file per message, a block per version, and in it pairs of lines: the value in
Kafka's JSON, the bytes in hex.

    v3
    {"name":"orders","partitionIndexes":[1]}
    076f7264657273020000000100

The first value of a version is as empty as can be; the others are random, with nulls, tags, Unicode, negative numbers
in them; one value of the newest version has everything longer than 127, where one byte of a varint does not suffice.
Versions that are newer than this Kafka are left out (kio has those). Records of internal topics that came later, which kio
does not have, are asked of a newer Kafka.
"""

import json
import random
import shutil
import subprocess
import tempfile
from itertools import groupby
from pathlib import Path
from uuid import UUID

from dataplane.protocol.api import OWN
from dataplane.protocol.schema import Wire, message_info, wires
from tests.dataplane.protocol.kafka_json import to_json
from tests.dataplane.protocol.strategies import all_messages

ORACLE = Path(__file__).parent / "java_oracle"
GOLDEN = Path(__file__).parents[1] / "golden" / "protocol"
NEWER = "4.3.0"
RECORDS = {cls.__name__ for cls, _ in all_messages() if message_info(cls).api_key is None}
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_WORDS = ("", "a", "orders", "tâche", "日志", "\N{PARTY POPPER}")


class Values:
    """Random messages; `long` ones have strings of 130 bytes, and arrays of 130 where elements are primitive."""

    def __init__(self, seed, *, empty=False, long=False):
        self.random = random.Random(seed)
        self.empty = empty
        self.long = long

    def message(self, cls, version):
        arguments = {}
        for name, wire, default in wires(cls):
            tagged = version in wire.tagged
            if (version in wire.versions or tagged) and not (tagged and (self.empty or self._chance(0.3))):
                null = version in wire.nullable and (self.empty or self._chance(0.2))
                # Kafka has no way to write an explicit null under a tag, except where null is not the default.
                arguments[name] = (None if not tagged else default) if null else self._value(wire, version)
        return cls(**arguments)

    def _chance(self, share):
        return not self.long and self.random.random() < share

    def _value(self, wire, version):
        if wire.kind == "array":
            return self._array(wire.element, version)
        if wire.kind == "struct":
            return self.message(wire.element, version)
        return self._primitive(wire.kind)

    def _array(self, element, version):
        if isinstance(element, Wire):
            if self.long:
                return (self._primitive(element.kind),) * (130 if element.kind in _BITS else 1)
            return () if self.empty else tuple(self._primitive(element.kind) for _ in range(self.random.randrange(3)))
        return () if self.empty else tuple(self.message(element, version) for _ in range(self.random.choice((1, 1, 2))))

    def _primitive(self, kind):
        if kind == "bool":
            return self._chance(0.5)
        if kind == "string":
            return "é" * 65 if self.long else ("" if self.empty else self.random.choice(_WORDS))
        if kind in ("bytes", "records"):
            return b"\xff" * 130 if self.long else (b"" if self.empty else self.random.randbytes(3))
        if kind == "uuid":
            return UUID(int=0) if self.empty else UUID(bytes=self.random.randbytes(16))
        if kind == "float64":
            return 0.0 if self.empty else self.random.choice((0.5, -1.25, 1e300, 3.0))
        return 0 if self.empty else self._number(kind)

    def _number(self, kind):
        if kind == "uint16":
            return self.random.choice((0, 1, 65535, 9092))
        edge = 1 << (_BITS[kind] - 1)
        return self.random.choice((0, 1, -1, 7, edge - 1, -edge, self.random.randrange(-edge, edge)))


def questions():
    """(message class, version, value) in the order of the files."""
    for cls, version in all_messages():
        if message_info(cls).api_key in OWN:  # which Kafka does not have
            continue
        label = f"{cls.__name__} v{version}"
        yield cls, version, Values(label, empty=True).message(cls, version)
        for number in (1, 2):
            yield cls, version, Values(f"{label} #{number}").message(cls, version)
        if version == message_info(cls).versions.high:
            yield cls, version, Values(label, long=True).message(cls, version)


def ask_kafka(lines, folder=ORACLE, main_class="Oracle", version=None):
    """What a small Java program over Kafka's own classes answers: a line for each line. `version` if not that of its pom."""
    mvn = shutil.which("mvn")
    java = shutil.which("java")
    assert mvn, "no mvn on the PATH"
    assert java, "no java on the PATH"
    with tempfile.TemporaryDirectory() as build:
        path = Path(build) / "classpath"
        shutil.copytree(folder, Path(build) / "oracle")  # so that Maven leaves nothing in the tree
        command = [mvn, "-q", "-B", "-f", str(Path(build) / "oracle"), "compile", "dependency:build-classpath"]
        command += [f"-Dkafka.version={version}"] if version else []
        subprocess.run([*command, f"-Dmdep.outputFile={path}"], check=True)
        classes = f"{build}/oracle/target/classes:{path.read_text().strip()}"
        oracle = [java, "-cp", classes, main_class]
        done = subprocess.run(oracle, input="\n".join(lines), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()


def main():
    asked = [(cls.__name__, version, to_json(value, version)) for cls, version, value in questions()]
    lines = [json.dumps({"message": name, "version": version, "value": value}) for name, version, value in asked]
    answers = ask_kafka(lines)
    assert len(answers) == len(asked)
    later = [n for n, answer in enumerate(answers) if answer == "-" and asked[n][0] in RECORDS]
    for n, answer in zip(later, ask_kafka([lines[n] for n in later], version=NEWER), strict=True):
        assert answer != "-", f"no Kafka knows {asked[n][:2]}"
        answers[n] = answer
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for old in GOLDEN.glob("*.txt"):
        old.unlink()
    pairs = [pair for pair in zip(asked, answers, strict=True) if pair[1] != "-"]
    for (name, version), block in groupby(pairs, key=lambda pair: pair[0][:2]):
        with (GOLDEN / f"{name}.txt").open("a", encoding="utf-8") as out:
            out.write(f"v{version}\n")
            for (_, _, value), answer in block:
                out.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + f"\n{answer}\n")


if __name__ == "__main__":
    main()
