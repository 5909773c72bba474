"""Topics that come into being because a client names them are made at the rate at which it may ask for topics."""

from __future__ import annotations

import json
from dataclasses import replace

from dataplane.doors import Create
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic
from quota.contracts.instance import InstanceSpec
from tests.simulation.cluster import INSTANCE, SETTINGS, SetData, SimulatedCluster

SPEC = f"/sluice/instances/{INSTANCE}"


def test_naming_topics_makes_no_more_of_them_than_asking_for_them():
    settings = replace(
        SETTINGS, controller_mutation_rate=2, controller_quota_window_num=5, controller_quota_window_size_seconds=1
    )
    cluster = SimulatedCluster(seed=5, settings=settings)
    cluster.until(cluster.up)
    spec = InstanceSpec.from_json(cluster.zookeeper.tree.node(SPEC).data)
    change = replace(spec, generation=spec.generation + 1, auto_create_topics=True)
    word = Create("/sluice/changes/change-", json.dumps({"instance": INSTANCE}).encode(), sequential=True)
    cluster.zookeeper.write([SetData(SPEC, change.to_json()), word])
    cluster.network.run_for(2.0)
    request = MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=f"t{n}") for n in range(60)), allow_auto_topic_creation=True
    )

    def made():
        answer = cluster.client.call(1, request, 9)
        cluster.until(lambda: answer.done, 10)
        codes = [topic.error_code for topic in answer.result().topics]
        assert set(codes) <= {0, ErrorCode.LEADER_NOT_AVAILABLE}
        return codes.count(0)

    made()
    cluster.network.run_for(3.0)
    assert 10 <= made() <= 11  # what is saved up, and the one that brings it into debt
    cluster.network.run_for(3.0)
    assert 11 <= made() <= 11 + 2 * 3 + 1
    cluster.network.run_for(3.0)
    assert made() > 12
