"""DescribeCluster: the brokers as this session reaches them (KIP-700)."""

from __future__ import annotations

from dataplane.handlers.context import RequestContext
from dataplane.protocol.messages.discovery import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)


def handle_describe_cluster(ctx: RequestContext, _request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Every live broker, the controller, and the cluster's id."""
    return DescribeClusterResponse(
        cluster_id=ctx.cluster_id,
        controller_id=ctx.broker.metadata.controller_id,
        brokers=tuple(DescribeClusterBroker(*broker) for broker in ctx.live_brokers()),
    )
