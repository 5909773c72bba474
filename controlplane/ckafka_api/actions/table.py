"""The actions that are answered. What the SDK knows besides is refused by name: see `dispatch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.ckafka_api.actions import (
    acls,
    groups,
    instances,
    messages,
    places,
    routes,
    tasks,
    throttle_rules,
    topics,
    users,
)
from controlplane.ckafka_api.actions.calls import Action, changing, reading

if TYPE_CHECKING:
    from collections.abc import Mapping

TABLE: Mapping[str, Action] = {
    "CreatePostPaidInstance": changing(instances.buy, "VpcId", "SubnetId", of_instance=False, can_be_taken_back=True),
    "ModifyInstancePre": changing(instances.resize, can_be_taken_back=True),
    "InstanceScalingDown": changing(instances.scale_down, "UpgradeStrategy", can_be_taken_back=True),
    "ModifyInstanceAttributes": changing(instances.change, can_be_taken_back=True),
    "DeleteInstancePost": changing(instances.delete, can_be_taken_back=True),
    "DescribeInstances": reading(instances.listed, of_instance=False),
    "DescribeTypeInstances": reading(instances.listed, of_instance=False),
    "DescribeInstancesDetail": reading(instances.detailed, of_instance=False),
    "DescribeInstanceAttributes": reading(instances.attributes),
    "DescribeModifyType": reading(instances.modify_type),
    "DescribeCkafkaVersion": reading(instances.version),
    "InquireCkafkaPrice": reading(
        places.price, "InstanceType", "Bandwidth", "InquiryDiskParam", "Partition", of_instance=False
    ),
    "DescribeRegion": reading(places.regions, of_instance=False),
    "DescribeCkafkaZone": reading(places.zones, of_instance=False),
    "DescribeTaskStatus": reading(tasks.status, "FlowId", of_instance=False),
    "DescribeRoute": reading(routes.routes),
    "CreateRoute": changing(routes.create, "VipType", can_be_taken_back=True),
    "DeleteRoute": changing(routes.delete, "RouteId", can_be_taken_back=True),
    "DeleteRouteTriggerTime": changing(routes.trigger_time, "DelayTime"),
    "DescribeAccessPolicy": reading(routes.policy, "RouteId"),
    "ModifyAccessPolicy": changing(routes.policy_set, "RouteId"),
    "CreateTopic": changing(topics.create, "TopicName", "PartitionNum"),
    "DeleteTopic": changing(topics.delete, "TopicName"),
    "CreatePartition": changing(topics.grow, "TopicName", "PartitionNum"),
    "ModifyTopicAttributes": changing(topics.change, "TopicName"),
    "BatchModifyTopicAttributes": changing(topics.change_several, "Topic"),
    "CreateTopicIpWhiteList": changing(topics.whitelist_set, "TopicName", "IpWhiteList"),
    "DescribeTopic": reading(topics.listed),
    "DescribeTopicDetail": reading(topics.detailed),
    "DescribeTopicAttributes": reading(topics.attributes, "TopicName"),
    "DescribeTopicSyncReplica": reading(topics.replicas, "TopicName"),
    "DescribeTopicSubscribeGroup": reading(groups.of_topic, "TopicName"),
    "DescribeConsumerGroup": reading(groups.subscribed),
    "DescribeGroup": reading(groups.listed),
    "DescribeGroupInfo": reading(groups.described, "GroupList"),
    "DescribeGroupOffsets": reading(groups.offsets, "Group"),
    "ModifyGroupOffsets": changing(groups.offsets_move, "Group", "Strategy"),
    "BatchModifyGroupOffsets": changing(groups.offsets_set, "GroupName", "Partitions"),
    "DeleteGroup": changing(groups.delete, "Group"),
    "FetchMessageByOffset": reading(messages.by_offset, "Topic", "Partition", "Offset"),
    "FetchMessageListByOffset": reading(messages.list_by_offset, "Topic", "Partition", "Offset"),
    "FetchMessageListByTimestamp": reading(messages.list_by_time, "Topic", "Partition", "StartTime"),
    "CreateThrottleRule": changing(throttle_rules.create, "ThrottleType"),
    "ModifyThrottleRule": changing(throttle_rules.change, "ThrottleRuleId"),
    "DeleteThrottleRule": changing(throttle_rules.delete, "ThrottleRuleId"),
    "DescribeThrottleRules": reading(throttle_rules.listed),
    "CreateUser": changing(users.create, "Name", "Password"),
    "DeleteUser": changing(users.delete, "Name"),
    "DescribeUser": reading(users.listed),
    "ModifyPassword": changing(users.password_set, "Name", "Password", "PasswordNew"),
    "CreateAcl": changing(acls.create, "ResourceType", "Operation", "PermissionType"),
    "BatchCreateAcl": changing(acls.create_several, "ResourceType", "ResourceNames", "RuleList"),
    "DeleteAcl": changing(acls.delete, "ResourceType"),
    "DescribeACL": reading(acls.listed, "ResourceType"),
    "CreateAclRule": changing(acls.rule_create, "ResourceType", "PatternType", "RuleName", "RuleList"),
    "ModifyAclRule": changing(acls.rule_change, "RuleName", "IsApplied"),
    "DeleteAclRule": changing(acls.rule_delete, "RuleName"),
    "DescribeAclRule": reading(acls.rules_listed),
}
