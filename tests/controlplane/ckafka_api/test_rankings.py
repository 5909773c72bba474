"""Which topics take in or give out most, by the metered hours; and on which hosts an instance is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.usage import usage_raise, usage_row

pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcfromtimestamp")
MIB = 2**20


@pytest.fixture
def used(ask, instance):
    """Three topics over two hours of one day, of which "gone" is no more; and somebody else's "orders"."""
    ask("CreateTopic", InstanceId=instance.id, TopicName="orders", PartitionNum=2, ReplicaNum=2)
    ask("CreateTopic", InstanceId=instance.id, TopicName="clicks", PartitionNum=1, ReplicaNum=1)
    for row in (
        usage_row(instance.id, "2026-05-01T10", 3 * MIB, topic="orders", consumed=MIB),
        usage_row(instance.id, "2026-05-01T11", 4 * MIB, topic="orders", consumed=MIB),
        usage_row(instance.id, "2026-05-01T11", 9 * MIB, topic="clicks"),
        usage_row(instance.id, "2026-05-01T11", MIB // 2, topic="gone", consumed=8 * MIB),
        usage_row("ins-stranger", "2026-05-01T11", 99 * MIB, topic="orders"),
    ):
        usage_raise([row])
    return instance


def flows(ask, used, kind, **dates):
    rows = ask("DescribeTopicFlowRanking", InstanceId=used.id, RankingType=kind, **dates)["Result"]["TopicFlow"]
    return [(row["TopicName"], row["PartitionNum"], row["ReplicaNum"], row["TopicTraffic"]) for row in rows]


def test_topics_are_ranked_by_what_they_took_in_or_gave_out(ask, used):
    day = {"BeginDate": "2026-05-01", "EndDate": "2026-05-01"}
    assert flows(ask, used, "PRO", **day) == [
        ("clicks", 1, 1, "9.00"),
        ("orders", 2, 2, "4.00"),
        ("gone", 0, 0, "0.50"),
    ]
    assert flows(ask, used, "CON", **day) == [("gone", 0, 0, "8.00"), ("orders", 2, 2, "1.00")]


@pytest.mark.parametrize(
    ("begin", "end", "produced"),
    [
        ("2026-05-01 10:00:00", "2026-05-01 11:00:00", "3.00"),
        ("2026-05-01T11:00:00Z", "2026-05-01T12:00:00Z", "1.00"),
        ("2026-04-30", "2026-05-01 00:00:00", None),
        ("2026-05-02", "2026-05-02", None),
    ],
)
def test_hours_count_that_begin_in_the_range(ask, used, begin, end, produced):
    found = {name: flow for name, _, _, flow in flows(ask, used, "PRO", BeginDate=begin, EndDate=end)}
    assert found.get("orders") == produced


def test_without_dates_it_is_the_last_day(ask, used):
    now = datetime.now(UTC)
    for hours, produced in ((1, 7 * MIB), (30, 5 * MIB)):
        hour = f"{now - timedelta(hours=hours):%Y-%m-%dT%H}"
        usage_raise([usage_row(used.id, hour, produced, boot=f"recent-{hours}", topic="orders")])
    assert flows(ask, used, "PRO") == [("orders", 2, 2, "7.00")]


def test_only_the_first_are_shown(ask, used, monkeypatch):
    monkeypatch.setattr("controlplane.ckafka_api.actions.rankings.MOST_TOPICS", 1)
    assert [name for name, *_ in flows(ask, used, "PRO", BeginDate="2026-05-01", EndDate="2026-05-01")] == ["clicks"]


def test_the_hosts_of_an_instance_are_those_that_clients_are_told(ask, instance):
    found = ask("DescribeCvmInfo", InstanceId=instance.id)["Result"]
    vips = ask("DescribeInstanceAttributes", InstanceId=instance.id)["Result"]["VipList"]
    hosts = list(dict.fromkeys(vip["Vip"] for vip in vips))
    assert hosts
    assert found["CvmList"] == [{"CkafkaInstanceId": instance.id, "InstanceId": host, "Ip": host} for host in hosts]
    assert found["TotalCount"] == len(hosts)


def test_a_prepaid_form_deletes_the_same_instance(ask, instance):
    data = ask("DeleteInstancePre", InstanceId=instance.id)["Result"]["Data"]
    assert data["InstanceId"] == instance.id
    assert ask("DescribeTaskStatus", FlowId=data["FlowId"])["Result"]["Status"] == 2
    assert ask("DescribeInstances")["Result"]["InstanceList"][0]["Status"] == 2
