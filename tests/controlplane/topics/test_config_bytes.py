"""DescribeConfigs, written byte by byte, beside the brokers' own codec; and the door that asks one broker after the other."""

from __future__ import annotations

import struct

import pytest

from controlplane.clusters.address import ClusterAddress
from controlplane.core.errors import ClusterUnavailable, NotFound
from controlplane.kafka import config_bytes as wire
from controlplane.kafka import config_door, leaving, size_door
from controlplane.kafka.config_bytes import ConfigRow, Origin
from controlplane.kafka.placing import Disk
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.messages import configs

CLUSTER = ClusterAddress(0, "")
REAL_CONFIGS, REAL_SIZES = config_door.KafkaConfigs, size_door.KafkaSizes


def synonym(name, value, source):
    return configs.DescribeConfigsSynonym(name, value, source)


def row(name, value, source, synonyms=(), documentation="what it does", read_only=False):
    return configs.DescribeConfigsResourceResult(
        name=name,
        value=value,
        read_only=read_only,
        config_source=source,
        synonyms=tuple(synonyms),
        config_type=5,
        documentation=documentation,
    )


def answered(*rows, code=0):
    result = configs.DescribeConfigsResult(code, "", 2, "k3v9x2qa.orders", rows)
    data = encode(configs.DescribeConfigsResponse(results=(result,)), wire.VERSION)
    return b"".join(map(bytes, data)) if isinstance(data, list) else bytes(data)


def test_a_topic_is_asked_about_with_synonyms_and_sentences():
    request = decode(configs.DescribeConfigsRequest, wire.VERSION, memoryview(wire.request("k3v9x2qa.orders")))
    assert request.resources == (configs.DescribeConfigsResource(2, "k3v9x2qa.orders", None),)
    assert (request.include_synonyms, request.include_documentation) == (True, True)


def test_what_a_topic_would_inherit_is_the_first_synonym_behind_its_own_of_whatever_name():
    """Two of them have one name, which is why librdkafka's own call does not do."""
    values = [
        synonym("retention.ms", "5", wire.OF_TOPIC),
        synonym("log.retention.ms", "7", wire.IN_FILE),
        synonym("log.retention.ms", "604800000", wire.KAFKAS),
    ]
    code, rows = wire.answer(answered(row("retention.ms", "5", wire.OF_TOPIC, values)))
    assert code == 0
    assert rows == [ConfigRow("retention.ms", "5", wire.OF_TOPIC, False, Origin("7", wire.IN_FILE), "what it does")]


def test_rows_come_by_name_and_what_has_no_synonym_inherits_its_own_value():
    plain = row("preallocate", "false", wire.KAFKAS, documentation=None, read_only=True)
    own = row("leader.replication.throttled.replicas", "*", wire.OF_TOPIC, [synonym("x", "*", wire.OF_TOPIC)])
    code, rows = wire.answer(answered(plain, own))
    assert code == 0
    assert [each.name for each in rows] == ["leader.replication.throttled.replicas", "preallocate"]
    assert rows[0].inherited == Origin(None, wire.KAFKAS)
    assert rows[1] == ConfigRow("preallocate", "false", wire.KAFKAS, True, Origin("false", wire.KAFKAS), "")


def test_a_refusal_is_its_code():
    assert wire.answer(answered(code=3)) == (3, [])


@pytest.mark.parametrize("length", [0, 8, 20])
def test_an_answer_that_ends_too_early_is_no_answer(length):
    with pytest.raises(struct.error):
        wire.answer(answered(row("retention.ms", "5", wire.KAFKAS))[:length])


class Asked:
    """Brokers by their ports, which answer or do not."""

    def __init__(self, monkeypatch, answers):
        self.answers, self.ports = answers, []
        monkeypatch.setattr(leaving, "signed_in", self._signed_in)
        monkeypatch.setattr(leaving, "ask", lambda port, *_rest, **_options: self.answers[port])

    def _signed_in(self, address, _who, *, timeout_s):
        asked = self

        class Connection:
            def __enter__(self):
                assert timeout_s > 0
                asked.ports.append(address[1])
                if asked.answers.get(address[1]) is None:
                    raise ClusterUnavailable("the group's coordinator does not answer")
                return address[1]

            def __exit__(self, *_exc):
                return None

        return Connection()


def test_a_broker_that_is_away_is_passed_over(brokers, monkeypatch):
    asked = Asked(monkeypatch, {19001: None, 19002: answered(row("retention.ms", "5", wire.KAFKAS))})
    found = REAL_CONFIGS(CLUSTER, None).rows("k3v9x2qa.orders")
    assert [each.value for each in found] == ["5"]
    assert asked.ports == [19001, 19002]


def test_a_topic_that_the_broker_does_not_know_is_none(brokers, monkeypatch):
    Asked(monkeypatch, {19001: answered(code=3)})
    assert REAL_CONFIGS(CLUSTER, None).rows("k3v9x2qa.orders") is None


def test_where_no_broker_answers_the_cluster_is_away(brokers, monkeypatch):
    Asked(monkeypatch, {})
    with pytest.raises(ClusterUnavailable):
        REAL_CONFIGS(CLUSTER, None).rows("k3v9x2qa.orders")


def test_anothers_topic_is_not_even_asked_about(admin, brokers):
    admin.create("zzzzzzzz.secret", partitions=1, replication_factor=1, config={})
    for name in ("secret", "zzzzzzzz.secret", "a/b", ""):
        with pytest.raises(NotFound):
            config_door.read(CLUSTER, "ins-k3v9x2qa", name)


def test_sizes_are_asked_of_each_broker_and_who_is_silent_is_named(brokers, monkeypatch):
    place = ("k3v9x2qa.orders", 0)
    Asked(monkeypatch, {19001: 1, 19003: 3})
    monkeypatch.setattr(
        size_door.placing, "log_dirs", lambda port, places: Disk(None, None, dict.fromkeys(places, port * 10))
    )
    assert REAL_SIZES(CLUSTER, None).sizes([place]) == {1: {place: 190010}, 2: None, 3: {place: 190030}}
