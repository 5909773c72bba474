"""An instance lives its whole life by the vendor's SDK over a real socket, from its price to its end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tencentcloud.ckafka.v20190819 import models

from controlplane.core.models import Operation
from tests.controlplane.conftest import run_to_the_end

from .conftest import access_key, refused, sdk_of

pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcfromtimestamp")


def asked(name, **members):
    request = getattr(models, f"{name}Request")()
    for member, value in members.items():
        assert hasattr(request, member), member
        setattr(request, member, value)
    return request


@pytest.fixture
def client(transactional_db, alice, secrets, brokers, live_server, monkeypatch):
    """The SDK as it is, with its endpoint set and nothing else."""
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    made = sdk_of(access_key(alice), endpoint=live_server.url.removeprefix("http://"))
    yield made
    made.request.conn._session.close()


def call(client, name, **members):
    return getattr(client, name)(asked(name, **members))


def ended(client, flow_id):
    """Be a worker until the task is over; then as the SDK sees it."""
    running = Operation.objects.unscoped("a test").get(state="running")
    assert call(client, "DescribeTaskStatus", FlowId=flow_id).Result.Status == 2
    assert run_to_the_end(running.id).state == "succeeded"
    return call(client, "DescribeTaskStatus", FlowId=flow_id).Result.Status


@pytest.fixture
def bought(client):
    """An instance's id."""
    made = call(client, "CreatePostPaidInstance", VpcId="v", SubnetId="s", BandWidth=20, DiskSize=100, Partition=100)
    assert ended(client, made.Result.Data.FlowId) == 0
    return made.Result.Data.InstanceId


def test_from_price_to_end(client):
    zone = call(client, "DescribeCkafkaZone").Result.ZoneList[0]
    assert zone.SoldOut == "false"

    disk = models.InquiryDiskParam()
    disk.DiskType, disk.DiskSize = "CLOUD_SSD", 1000
    price = call(
        client, "InquireCkafkaPrice", InstanceType="profession", Bandwidth=240, Partition=1700, InquiryDiskParam=disk
    ).Result.InstancePrice
    # SERVICE's worked bill: 919.62 + 292.50 + 36.27 for 117 hours.
    assert round(price.OriginalPrice * 117, 2) == 1248.39
    assert (price.Currency, price.TimeUnit) == ("CNY", "h")
    assert round(price.DetailPrices.DiskPrice.OriginalPrice * 117, 2) == 292.50

    bought = call(
        client, "CreatePostPaidInstance", VpcId="vpc-1", SubnetId="subnet-1", InstanceName="orders", BandWidth=20,
        DiskSize=100, Partition=100, ZoneId=int(zone.ZoneId),
    ).Result  # fmt: skip
    assert bought.ReturnCode == "0"
    name = bought.Data.InstanceId
    assert call(client, "DescribeInstances", SearchWord="order").Result.InstanceList[0].Status == 0
    assert ended(client, bought.Data.FlowId) == 0

    shown = call(client, "DescribeInstancesDetail", InstanceIdList=[name]).Result.InstanceList[0]
    assert (shown.Status, shown.Bandwidth, shown.DiskSize, shown.MaxPartitionNumber) == (1, 160, 100, 100)
    route = call(client, "DescribeRoute", InstanceId=name).Result.Routers[0]
    assert route.Status == 2
    assert len(route.BrokerVipList) == 3
    assert (route.VipList[0].Vip, route.VipList[0].Vport) == (shown.Vip, shown.Vport)

    # Nobody may connect until somebody is let in.
    assert call(client, "DescribeAccessPolicy", InstanceId=name, RouteId=1).Result.TotalCount == 0
    network = models.IpWhitelistDTO()
    network.CidrBlock = "10.1.0.0/16"
    assert call(client, "ModifyAccessPolicy", InstanceId=name, RouteId=1, IpWhitelist=[network]).Result == "success"
    policy = call(client, "DescribeAccessPolicy", InstanceId=name, RouteId=1).Result
    assert [row.CidrBlock for row in policy.IpWhitelist] == ["10.1.0.0/16"]

    # A public route, to which an address is let in and that ends; then it is removed.
    wanted = {"InstanceId": name, "VipType": 1, "AccessType": 3, "PublicNetwork": 3}
    opened = call(client, "CreateRoute", **wanted, IpWhitelist=[network]).Result.Data
    assert ended(client, opened.FlowId) == 0
    place = {"InstanceId": name, "RouteId": opened.RouteDTO.RouteId}
    assert place["RouteId"] == 2
    assert call(client, "DescribeAccessPolicy", **place).Result.IpWhitelist[0].CidrBlock == "10.1.0.0/16"
    call(
        client,
        "DeleteRouteTriggerTime",
        InstanceId=name,
        DelayTime=f"{datetime.now(UTC) + timedelta(hours=5):%Y-%m-%d %H:%M:%S}",
    )
    run_to_the_end(Operation.objects.unscoped("a test").get(state="running").id)
    first, second = call(client, "DescribeRoute", InstanceId=name).Result.Routers
    assert (first.RouteId, first.VipType, first.AccessType, first.DeleteTimestamp) == (1, 3, 0, "")
    assert (second.RouteId, second.VipType, second.AccessType, second.Status) == (2, 1, 3, 2)
    assert second.DeleteTimestamp
    assert {each.Vport for each in first.BrokerVipList}.isdisjoint(each.Vport for each in second.BrokerVipList)
    assert ended(client, call(client, "DeleteRoute", **place).Result.Data.FlowId) == 0
    assert [each.RouteId for each in call(client, "DescribeRoute", InstanceId=name).Result.Routers] == [1]

    call(
        client, "CreateTopic", InstanceId=name, TopicName="payments", PartitionNum=3, ReplicaNum=2, EnableWhiteList=1,
        IpWhiteList=["10.1.2.3"], RetentionMs=3_600_000, CleanUpPolicy="compact, delete", UncleanLeaderElectionEnable=0,
    )  # fmt: skip
    topic = call(client, "DescribeTopicAttributes", InstanceId=name, TopicName="payments").Result
    assert (topic.PartitionNum, topic.ReplicaNum, topic.EnableWhiteList) == (3, 2, 1)
    assert topic.IpWhiteList == ["10.1.2.3/32"]
    assert (topic.Config.Retention, topic.Config.CleanUpPolicy) == (3_600_000, "compact,delete")
    assert topic.Config.UncleanLeaderElectionEnable == 0
    assert [part.ReplicaNum for part in topic.Partitions] == [2, 2, 2]
    call(client, "CreatePartition", InstanceId=name, TopicName="payments", PartitionNum=5)
    call(client, "CreateTopicIpWhiteList", InstanceId=name, TopicName="payments", IpWhiteList=["10.1.0.0/24"])
    call(client, "ModifyTopicAttributes", InstanceId=name, TopicName="payments", RetentionMs=60_000)
    detail = call(client, "DescribeTopicDetail", InstanceId=name).Result.TopicList[0]
    assert (detail.PartitionNum, detail.IpWhiteListCount, detail.Config.Retention) == (5, 1, 60_000)

    limit = asked("CreateThrottleRule", InstanceId=name, ThrottleType=3, ProduceThrottle=5, TopicNameList=["payments"])
    client.CreateThrottleRule(limit)
    rule = call(client, "DescribeThrottleRules", InstanceId=name, ThrottleDimension=2).Result.ThrottleRuleList[0]
    assert (rule.TopicName, rule.ConsumeThrottle) == ("payments", -1)
    number = rule.ThrottleRuleId
    call(client, "ModifyThrottleRule", InstanceId=name, ThrottleRuleId=number, ConsumeThrottle=7)
    rule = call(client, "DescribeThrottleRules", InstanceId=name, ThrottleDimension=2).Result.ThrottleRuleList[0]
    assert rule.ConsumeThrottle == 7
    call(client, "DeleteThrottleRule", InstanceId=name, ThrottleRuleId=str(number))
    assert call(client, "DescribeThrottleRules", InstanceId=name, ThrottleDimension=2).Result.TotalCount == 0

    larger = call(client, "ModifyInstancePre", InstanceId=name, BandWidth=40, DiskSize=200, Partition=200).Result.Data
    assert ended(client, larger.FlowId) == 0
    seen = call(client, "DescribeInstanceAttributes", InstanceId=name).Result
    assert (seen.Bandwidth, seen.DiskSize, seen.CreatedPartitions, seen.RemainingPartitions) == (320, 200, 10, 190)
    call(client, "InstanceScalingDown", InstanceId=name, UpgradeStrategy=1, BandWidth=20, DiskSize=100, Partition=100)
    run_to_the_end(Operation.objects.unscoped("a test").get(state="running").id)

    assert seen.DeleteProtectionEnable == 0
    call(client, "ModifyInstanceAttributes", InstanceId=name, DeleteProtectionEnable=1)
    run_to_the_end(Operation.objects.unscoped("a test").get(state="running").id)
    assert call(client, "DescribeInstanceAttributes", InstanceId=name).Result.DeleteProtectionEnable == 1
    code, _ = refused(lambda: call(client, "DeleteInstancePost", InstanceId=name))
    assert code == "OperationDenied"
    call(client, "ModifyInstanceAttributes", InstanceId=name, DeleteProtectionEnable=0)
    run_to_the_end(Operation.objects.unscoped("a test").get(state="running").id)

    call(client, "DeleteTopic", InstanceId=name, TopicName="payments")
    assert call(client, "DescribeTopic", InstanceId=name).Result.TotalCount == 0
    assert ended(client, call(client, "DeleteInstancePost", InstanceId=name).Result.FlowId) == 0
    assert call(client, "DescribeInstances").Result.TotalCount == 0
    code, _ = refused(lambda: call(client, "DescribeInstanceAttributes", InstanceId=name))
    assert code == "InvalidParameterValue.InstanceNotExist"


def test_topics_without_an_instance_and_a_group_that_nobody_is_in_yet(client, bought):
    name = f"{bought}-payments"
    made = call(client, "CreateDatahubTopic", Name=name, PartitionNum=2, RetentionMs=3_600_000).Result
    assert (made.TopicName, made.TopicId) == ("payments", "payments")
    assert [row.Name for row in call(client, "DescribeDatahubTopics").Result.TopicList] == [name]

    first, second = models.BatchContent(), models.BatchContent()
    first.Key, first.Body, second.Body = "k", "before", "after"
    assert call(client, "SendMessage", DataHubId=name, Message=[first]).MessageId == ["0-0"]
    made = call(client, "CreateConsumer", InstanceId=bought, GroupName="billing", TopicName="payments")
    assert made.Result.ReturnCode == "0"
    assert call(client, "SendMessage", DataHubId=name, Message=[second]).MessageId == ["0-1"]
    topic = call(client, "DescribeDatahubGroupOffsets", Name=name, Group="billing").Result.TopicList[0]
    assert [(part.Partition, part.Offset, part.Lag) for part in topic.Partitions] == [(0, 1, 1), (1, 0, 0)]
    unread = call(client, "FetchLatestDatahubMessageList", Name=name, Partition=0, Offset=1).Result
    assert [(message.Key, message.Value) for message in unread] == [(None, "after")]

    call(client, "DeleteGroupSubscribeTopic", InstanceId=bought, Group="billing", Topic="payments")
    assert call(client, "DescribeGroup", InstanceId=bought).Result.TotalCount == 0
    call(client, "DeleteDatahubTopic", Name=name)
    assert call(client, "DescribeDatahubTopics").Result.TotalCount == 0
    assert ended(client, call(client, "DeleteInstancePre", InstanceId=bought).Result.Data.FlowId) == 0
    assert call(client, "DescribeInstances").Result.TotalCount == 0


@pytest.mark.parametrize(
    ("name", "members", "code"),
    [
        ("CreateTopic", {"TopicName": "new", "PartitionNum": "3"}, "InvalidParameter"),
        ("CreateTopic", {"TopicName": "new"}, "MissingParameter"),
        ("CreateTopic", {"TopicName": "a b", "PartitionNum": 1}, "InvalidParameterValue"),
        ("CreateTopic", {"TopicName": "new", "PartitionNum": 1, "Note": "mine"}, "UnsupportedOperation"),
        ("CreateTopic", {"TopicName": "new", "PartitionNum": 500}, "LimitExceeded"),
        ("DeleteTopic", {"TopicName": "nothere"}, "ResourceNotFound"),
        ("DeleteRoute", {"RouteId": 1}, "OperationDenied"),
        ("UpgradeBrokerVersion", {"Type": 1}, "UnsupportedOperation"),
    ],
)
def test_what_is_wrong_has_the_vendors_codes(client, bought, name, members, code):
    found, _ = refused(lambda: call(client, name, InstanceId=bought, **members))
    assert found == code
