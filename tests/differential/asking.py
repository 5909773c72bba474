"""One side of the comparison: asks a broker what a scenario wants asked, and keeps the answers in order."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from dataplane.records.batch import Record, build_batch
from tests.differential.answers import flat
from tests.support.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Callable

START_MS = int(time.time()) // 1000 * 1_000_000 + 7
"""The time of all records: the same for both sides, recent enough for retention, known by its last digit."""
_LEADER_WITHIN_S = 15


@dataclass
class Step:
    """One request's answer. `fields` of a connection that was closed is {"connection": "closed"}."""

    label: str
    fields: dict[str, object]
    took_s: float = 0.0


@dataclass
class Asker:
    """`ask` is what scenarios call; everything else prepares."""

    address: tuple[str, int]
    version: int
    prefix: str
    steps: list[Step] = field(default_factory=list)
    _wire: Wire | None = None

    def ask(self, label: str, request: Any, version: int | None = None) -> Any:
        """The answer, kept for the comparison; None where the broker closed the connection or said nothing for 10 s."""
        answer: Any = None
        began = time.monotonic()
        try:
            answer = self.quietly(request, version)
            fields = self.fields(answer)
        except TimeoutError:
            self.close()
            fields = {"connection": "silent"}
        except ConnectionError:
            self.close()
            fields = {"connection": "closed"}
        self.steps.append(Step(label, fields, time.monotonic() - began))
        return answer

    def fields(self, answer: Any) -> dict[str, object]:
        """See `answers.flat`; names of this version's own are written `~`, so that versions can be compared."""
        return {self._short(path): self._short(value) for path, value in flat(answer).items()}

    def _short(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return re.sub("x{60,}", "xx…", value.replace(self.prefix, "~"))

    def quietly(self, request: Any, version: int | None = None) -> Any:
        """The answer, not compared."""
        if self._wire is None:
            self._wire = Wire(self.address)
        return self._wire.call(request, self.version if version is None else version)

    def another(self) -> Asker:
        """A second client of the same broker; its answers are kept here too."""
        return Asker(self.address, self.version, self.prefix, self.steps)

    def raw(self, label: str, frame: bytes) -> None:
        """Bytes as they are; what comes back in two seconds."""
        with Wire(self.address, timeout_s=2.0) as wire:
            wire.socket.sendall(frame)
            try:
                fields: dict[str, object] = {"answer": wire.frame().hex()}
            except TimeoutError:
                fields = {"connection": "silent"}
            except ConnectionError:
                fields = {"connection": "closed"}
        self.steps.append(Step(label, fields))

    def later(self, label: str, ask: Callable[[], Any], until: Callable[[Any], bool], within_s: float = 10.0) -> Any:
        """Ask again until it is as it should be or the time is up; the last answer is compared."""
        deadline = time.monotonic() + within_s
        answer = ask()
        while not until(answer) and time.monotonic() < deadline:
            time.sleep(0.1)
            answer = ask()
        self.steps.append(Step(label, self.fields(answer)))
        return answer

    def close(self) -> None:
        """The connection; `ask` opens another."""
        if self._wire is not None:
            self._wire.socket.close()
            self._wire = None

    # --- preparations -------------------------------------------------------------------------------------------------

    def name(self, suffix: str) -> str:
        """A name that no other scenario or version has."""
        return f"{self.prefix}-{suffix}"

    def topic(self, suffix: str, partitions: int = 1, **configs: str) -> str:
        """A new topic whose partitions have leaders; its name."""
        name = self.name(suffix)
        settings = tuple(CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items())
        self.quietly(
            CreateTopicsRequest(topics=(CreatableTopic(name, partitions, 1, (), settings),), timeout_ms=10_000), 4
        )
        deadline = time.monotonic() + _LEADER_WITHIN_S
        while not self._has_leaders(name, partitions):
            assert time.monotonic() < deadline, f"{name} has no leaders at {self.address}"
            time.sleep(0.05)
        return name

    def topic_id(self, name: str) -> Any:
        """As Metadata say."""
        answer = self.quietly(MetadataRequest(topics=(MetadataRequestTopic(name=name),)), 12)
        return answer.topics[0].topic_id

    def _has_leaders(self, name: str, partitions: int) -> bool:
        answer = self.quietly(MetadataRequest((MetadataRequestTopic(name=name),), allow_auto_topic_creation=False), 9)
        found = answer.topics[0].partitions
        return len(found) == partitions and all(partition.leader_id >= 0 for partition in found)

    def produce(
        self, topic: str, partition: int = 0, count: int = 3, *, batches: int = 1, first_ms: int = START_MS
    ) -> None:
        """Batches of `count` records each, a second apart."""
        for number in range(batches):
            data = batch(count, first_ms=first_ms + number * count * 1000)
            parts = (PartitionProduceData(partition, data),)
            answer = self.quietly(ProduceRequest(None, -1, 10_000, (TopicProduceData(topic, parts),)), 7)
            assert answer.responses[0].partition_responses[0].error_code == 0, answer


def batch(count: int = 3, *, first_ms: int = START_MS, **members: Any) -> bytes:
    """A batch of records k0, k1, … a second apart."""
    records = [Record(b"k%d" % n, b"value %d" % n, timestamp=first_ms + n * 1000) for n in range(count)]
    return bytes(build_batch(records, now_ms=first_ms, **members))
