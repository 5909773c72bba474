"""A broker of a few lines, of any age, on a thread: what clients are told by it, and how it fails, is for the test to say.

with SmallBroker({"t": 2}) as broker:                      # one topic of two partitions, of which it is the leader
    broker.address, broker.logs["t", 0]                    # where it is; the messages of a partition
    broker.refusals[ApiKey.PRODUCE] = [ErrorCode.NOT_LEADER_OR_FOLLOWER]    # the next one is refused
    broker.hang_ups.append(ApiKey.FETCH)                   # the next one is not answered
SmallBroker({"t": 1}, versions=None)                       # Kafka 0.8: it ends a connection that asks for versions
SmallBroker({"t": 1}, versions={ApiKey.PRODUCE: (0, 2), …})
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from dataplane.clients.messages import Message, read_entries
from dataplane.clients.versions import OURS
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.frame import FrameSplitter
from dataplane.protocol.headers import decode_request, encode_frame, parse_request_header
from dataplane.protocol.messages import configs, discovery, fetch, produce, topics
from dataplane.records.batch import Record, build_batch
from dataplane.records.legacy import Message as OldMessage
from dataplane.records.legacy import write_message_set

HOST = "127.0.0.1"
NEWEST = {**OURS, ApiKey.METADATA: (0, 12), ApiKey.API_VERSIONS: (0, 4)}


class SmallBroker:
    """A context manager."""

    def __init__(self, given, versions=NEWEST, codec=0):
        self.topics = dict(given)
        self.versions = versions
        self.codec = codec  # with which it answers fetches
        self.logs: dict[tuple[str, int], list[Message]] = {(t, p): [] for t, n in given.items() for p in range(n)}
        self.first_offset = 0
        self.ids: dict[str, UUID] = {}  # of topics; it does not tell those of others
        self.behind: dict[
            tuple[str, int], list[int]
        ] = {}  # so much of its end it does not show yet, each time that it is asked
        self.open_from: dict[tuple[str, int], int] = {}  # where a transaction that is open begins
        self.without_leader: set[tuple[str, int]] = set()
        self.hidden: dict[str, int] = {}  # topics that come into being, and how often they are asked for in vain
        self.refusals: dict[ApiKey, list[int]] = {}
        self.hang_ups: list[ApiKey] = []
        self.lost_answers: list[ApiKey] = []  # done, and not answered
        self.largest_batch = 2**30
        self.asked: list[tuple[ApiKey, int]] = []  # with the version
        self.configs: dict[str, dict[str, str]] = {}  # of topics
        self.cuts_at_size = False  # as before 0.10.1: what does not fit is cut
        self._listener = socket.create_server((HOST, 0))
        self.address = self._listener.getsockname()
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self):
        self._threads[0].start()
        return self

    def __exit__(self, *_):
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)

    def end(self, topic, partition):
        """The offset after the last one."""
        return len(self.logs[topic, partition])

    def count(self, key):
        return sum(1 for asked, _ in self.asked if asked == key)

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection):
        frames = FrameSplitter(2**30)
        with connection, suppress(OSError):
            while data := connection.recv(2**16):
                for frame in frames.feed(data):
                    header = parse_request_header(memoryview(frame))
                    key = ApiKey(header.api_key)
                    self.asked.append((key, header.api_version))
                    if key in self.hang_ups:
                        self.hang_ups.remove(key)
                        return
                    if key == ApiKey.API_VERSIONS and self.versions is None:
                        return
                    answer = self._answer(key, header.api_version, decode_request(header, frame))
                    if key in self.lost_answers:
                        self.lost_answers.remove(key)
                        return
                    if answer is not None:
                        parts = encode_frame(header.api, header.api_version, header.correlation_id, answer)
                        connection.sendall(b"".join(parts))

    def _answer(self, key, version, request):
        if key == ApiKey.API_VERSIONS:
            rows = tuple(discovery.ApiVersion(k, low, high) for k, (low, high) in self.versions.items())
            return discovery.ApiVersionsResponse(api_keys=rows)
        if key == ApiKey.METADATA:
            return self._metadata(request, version)
        if key == ApiKey.PRODUCE:
            return self._produce(request, version)
        if key == ApiKey.FETCH:
            return self._fetch(request, version)
        if key == ApiKey.DESCRIBE_CONFIGS:
            return self._describe_configs(request)
        if key == ApiKey.LIST_OFFSETS:
            return self._list_offsets(request, version)
        if key in (ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.INCREMENTAL_ALTER_CONFIGS):
            return self._changed(key, request)
        return self._more(key, request, version)

    def _more(self, key, request, version):
        raise AssertionError(f"nobody here answers {key.name}")

    def _code(self, key):
        waiting = self.refusals.get(key)
        return waiting.pop(0) if waiting else ErrorCode.NONE

    def _metadata(self, request, version):
        wanted = {one.name for one in request.topics or ()}
        if request.topics is None or (version == 0 and not wanted):
            wanted = set(self.topics)
        rows = []
        for name in sorted(wanted):
            partitions = tuple(
                discovery.MetadataResponsePartition(
                    5 if (name, p) in self.without_leader else 0, p, -1 if (name, p) in self.without_leader else 1
                )
                for p in range(self.topics.get(name, 0))
            )
            code = ErrorCode.NONE if name in self.topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if self.hidden.get(name, 0):
                self.hidden[name] -= 1
                code, partitions = ErrorCode.LEADER_NOT_AVAILABLE, ()
            rows.append(
                discovery.MetadataResponseTopic(code, name, self.ids.get(name, UUID(int=0)), partitions=partitions)
            )
        return discovery.MetadataResponse(
            brokers=(discovery.MetadataResponseBroker(1, *self.address),), controller_id=1, topics=tuple(rows)
        )

    def _produce(self, request, version):
        code = self._code(ApiKey.PRODUCE)
        rows = []
        for topic in request.topic_data:
            answers = []
            for one in topic.partition_data:
                log, this = self.logs[topic.name, one.index], code
                if len(one.records) > self.largest_batch:
                    this = ErrorCode.MESSAGE_TOO_LARGE
                base = len(log)
                if not this:
                    magic = one.records[16]
                    assert magic == (2 if version >= 3 else 1 if version == 2 else 0)
                    log += [each.message for each in read_entries(one.records, 0).messages]
                answers.append(produce.PartitionProduceResponse(one.index, this, -1 if this else base))
            rows.append(produce.TopicProduceResponse(topic.name, tuple(answers)))
        return produce.ProduceResponse(tuple(rows)) if request.acks else None

    def _fetch(self, request, version):
        code, rows = self._code(ApiKey.FETCH), []
        for topic in request.topics:
            answers = []
            for one in topic.partitions:
                log = self.logs[topic.topic, one.partition]
                stable, this = self.open_from.get((topic.topic, one.partition), len(log)), code
                if not self.first_offset <= one.fetch_offset <= len(log):
                    this = this or ErrorCode.OFFSET_OUT_OF_RANGE
                readable = log[:stable] if request.isolation_level else log
                data = b"" if this else self._entries(readable, one.fetch_offset, version)
                if self.cuts_at_size:
                    data = data[: one.partition_max_bytes]
                answers.append(fetch.FetchResponsePartitionData(one.partition, this, len(log), stable, records=data))
            rows.append(fetch.FetchableTopicResponse(topic.topic, partitions=tuple(answers)))
        if request.max_wait_ms and not any(p.records for r in rows for p in r.partitions):
            time.sleep(min(request.max_wait_ms, 20) / 1000)
        return fetch.FetchResponse(responses=tuple(rows))

    def _entries(self, log, offset, version):
        some = list(enumerate(log))[offset:]
        if not some:
            return b""
        if version < 4:
            magic = 1 if version >= 2 else 0
            rows = [OldMessage(at, magic, 0, m.timestamp if magic else -1, m.key, m.value) for at, m in some]
            return write_message_set(rows, self.codec)
        records = [Record(m.key, m.value, m.headers, m.timestamp) for _, m in some]
        return bytes(build_batch(records, now_ms=0, base_offset=some[0][0], codec=self.codec))

    def make(self, topic, partitions):
        """A topic, or more partitions of one."""
        for partition in range(self.topics.get(topic, 0), partitions):
            self.logs[topic, partition] = []
        self.topics[topic] = partitions

    def _changed(self, key, request):
        if key == ApiKey.CREATE_TOPICS:
            results = []
            for one in request.topics:
                code = ErrorCode.TOPIC_ALREADY_EXISTS if one.name in self.topics else ErrorCode.NONE
                if not code:
                    self.make(one.name, one.num_partitions)
                    self.configs[one.name] = {each.name: each.value for each in one.configs}
                results.append(topics.CreatableTopicResult(name=one.name, error_code=code))
            return topics.CreateTopicsResponse(topics=tuple(results))
        if key == ApiKey.CREATE_PARTITIONS:
            for one in request.topics:
                self.make(one.name, one.count)
            results = tuple(topics.CreatePartitionsTopicResult(name=one.name) for one in request.topics)
            return topics.CreatePartitionsResponse(results=results)
        for one in request.resources:
            there = self.configs.setdefault(one.resource_name, {})
            for each in one.configs:
                if each.config_operation:
                    there.pop(each.name, None)
                else:
                    there[each.name] = each.value
        answered = configs.IncrementalAlterConfigsResponseAlterConfigsResourceResponse
        return configs.IncrementalAlterConfigsResponse(
            responses=tuple(answered(resource_type=2, resource_name=one.resource_name) for one in request.resources)
        )

    def _describe_configs(self, request):
        rows = []
        for one in request.resources:
            wanted, found = one.configuration_keys, self.configs.get(one.resource_name, {})
            entries = tuple(
                configs.DescribeConfigsResourceResult(name=name, value=value, config_source=1)
                for name, value in found.items()
                if wanted is None or name in wanted
            )
            rows.append(
                configs.DescribeConfigsResult(resource_type=2, resource_name=one.resource_name, configs=entries)
            )
        return configs.DescribeConfigsResponse(results=tuple(rows))

    def _list_offsets(self, request, version):
        rows = []
        for topic in request.topics:
            answers = []
            for one in topic.partitions:
                end = self.end(topic.name, one.partition_index)
                hidden = self.behind.get((topic.name, one.partition_index))
                if hidden and one.timestamp == -1:
                    end -= hidden.pop(0)
                offset = self.first_offset if one.timestamp == -2 else end
                found = fetch.ListOffsetsPartitionResponse(one.partition_index, 0, offset=offset)
                old = (offset,) if one.timestamp == -2 else (end, self.first_offset)[: one.max_num_offsets]
                answers.append(replace(found, old_style_offsets=old) if version == 0 else found)
            rows.append(fetch.ListOffsetsTopicResponse(topic.name, tuple(answers)))
        return fetch.ListOffsetsResponse(topics=tuple(rows))
