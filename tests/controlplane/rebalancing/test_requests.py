"""Requests that are written byte by byte, beside the brokers' own codec."""

from __future__ import annotations

import struct

import pytest

from controlplane.kafka import leaving, placing
from controlplane.kafka.placing import Disk, Ongoing, Refusal
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.messages import configs, log_dirs, reassignment


@pytest.fixture
def broker(monkeypatch):
    """Answers with `broker.answer`; `broker.asked` is the request, read as a broker reads it."""

    class Broker:
        answer: object = None
        kind: type = object
        asked: object = None

        def ask(self, _connection, key, version, body, client_id):
            assert client_id != leaving.CLIENT_ID  # by which brokers know what is for a tenant
            flexible = key in (placing.ALTER_REASSIGNMENTS, placing.LIST_REASSIGNMENTS, placing.DESCRIBE_LOG_DIRS)
            assert not flexible or body[:1] == b"\0"  # tagged fields of the header
            self.asked = decode(self.kind, version, memoryview(body[1:] if flexible else body))
            return (b"\0" if flexible else b"") + encode(self.answer, version)

    found = Broker()
    monkeypatch.setattr(leaving, "ask", found.ask)
    return found


def test_reassignments_are_begun_and_called_back(broker):
    broker.kind = reassignment.AlterPartitionReassignmentsRequest
    row, topic = reassignment.ReassignablePartitionResponse, reassignment.ReassignableTopicResponse
    broker.answer = reassignment.AlterPartitionReassignmentsResponse(
        responses=(topic("a" * 200, (row(0), row(3, 39, "not alive"))), topic("b", (row(1, 85, None),)))
    )
    code, refused = placing.alter(None, {("a" * 200, 0): [1, 2], ("a" * 200, 3): [3], ("b", 1): None}, timeout_ms=5)
    assert code == 0
    assert refused == {("a" * 200, 3): Refusal(39, "not alive"), ("b", 1): Refusal(85, "")}
    wanted, one = reassignment.ReassignableTopic, reassignment.ReassignablePartition
    assert broker.asked == reassignment.AlterPartitionReassignmentsRequest(
        5, (wanted("a" * 200, (one(0, (1, 2)), one(3, (3,)))), wanted("b", (one(1, None),)))
    )


def test_what_is_under_way_is_listed(broker):
    broker.kind = reassignment.ListPartitionReassignmentsRequest
    one = reassignment.OngoingPartitionReassignment(2, (4, 1, 2), (4,), (1,))
    broker.answer = reassignment.ListPartitionReassignmentsResponse(
        topics=(reassignment.OngoingTopicReassignment("a", (one,)),)
    )
    code, found = placing.under_way(None, timeout_ms=7)
    assert (code, found) == (0, {("a", 2): Ongoing((4, 1, 2), (4,), (1,))})
    assert found["a", 2].target == (4, 2)
    assert broker.asked == reassignment.ListPartitionReassignmentsRequest(7, None)


def test_an_election_that_is_not_needed_is_no_refusal(broker):
    broker.kind = reassignment.ElectLeadersRequest
    row = reassignment.PartitionResult
    broker.answer = reassignment.ElectLeadersResponse(
        replica_election_results=(
            reassignment.ReplicaElectionResult("a", (row(0), row(1, 84, "not needed"), row(2, 80, "not in sync"))),
        )
    )
    code, refused = placing.elect(None, [("a", 0), ("a", 1), ("a", 2)], timeout_ms=9)
    assert (code, refused) == (0, {("a", 2): Refusal(80, "not in sync")})
    assert broker.asked == reassignment.ElectLeadersRequest(0, (reassignment.TopicPartitions("a", (0, 1, 2)),), 9)


def test_directories_on_one_disk_are_counted_once(broker):
    broker.kind = log_dirs.DescribeLogDirsRequest
    row, topic, result = (
        log_dirs.DescribeLogDirsPartition,
        log_dirs.DescribeLogDirsTopic,
        log_dirs.DescribeLogDirsResult,
    )
    broker.answer = log_dirs.DescribeLogDirsResponse(
        results=(
            result(0, "/one", (topic("a", (row(0, 10), row(1, 300))),), 1000, 400),
            result(0, "/two", (topic("a", (row(0, 5, 0, True),)),), 1000, 400),
            result(0, "/three", (), 2000, 100),
        )
    )
    assert placing.log_dirs(None, None) == Disk(3000, 500, {("a", 0): 15, ("a", 1): 300})
    assert broker.asked == log_dirs.DescribeLogDirsRequest(None)
    placing.log_dirs(None, [("a", 1), ("b", 0), ("a", 4)])
    wanted = log_dirs.DescribableLogDirTopic
    assert broker.asked == log_dirs.DescribeLogDirsRequest((wanted("a", (1, 4)), wanted("b", (0,))))


def test_settings_of_all_brokers_are_set_and_taken_back(broker):
    broker.kind = configs.IncrementalAlterConfigsRequest
    row = configs.IncrementalAlterConfigsResponseAlterConfigsResourceResponse
    broker.answer = configs.IncrementalAlterConfigsResponse(responses=(row(40, "no", 4, ""),))
    assert placing.configure(None, placing.BROKER, {"": {"rate": "5", "other": None}}) == {"": Refusal(40, "no")}
    one = configs.IncrementalAlterConfigsRequestAlterableConfig
    assert broker.asked == configs.IncrementalAlterConfigsRequest(
        (
            configs.IncrementalAlterConfigsRequestAlterConfigsResource(
                4, "", (one("rate", 0, "5"), one("other", 1, None))
            ),
        )
    )


@pytest.mark.parametrize("size", range(1, 30))
def test_an_answer_that_ends_early_is_an_error(monkeypatch, size):
    one = reassignment.OngoingPartitionReassignment(2, (4, 1, 2), (4,), (1,))
    whole = reassignment.ListPartitionReassignmentsResponse(
        topics=(reassignment.OngoingTopicReassignment("a" * 20, (one,)),)
    )
    monkeypatch.setattr(leaving, "ask", lambda *_: (b"\0" + encode(whole, 0))[:size])
    with pytest.raises(struct.error):
        placing.under_way(None, timeout_ms=1)
