"""DescribeCluster: the brokers as this session reaches them (KIP-700)."""

from __future__ import annotations

from dataplane.handlers.authorized import cluster_operations
from dataplane.handlers.context import RequestContext
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2
"""Endpoint types (KIP-919)."""


def handle_describe_cluster(ctx: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Every live broker, the controller, and the cluster's id."""
    if request.endpoint_type == CONTROLLERS:
        return _refusal(ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this is the endpoint of a broker")
    if request.endpoint_type != BROKERS:
        return _refusal(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "there is no such type of endpoints")
    return DescribeClusterResponse(
        cluster_id=ctx.cluster_id,
        controller_id=ctx.broker.metadata.controller_id,
        brokers=tuple(DescribeClusterBroker(*broker) for broker in ctx.live_brokers()),
        cluster_authorized_operations=cluster_operations(ctx, is_asked=request.include_cluster_authorized_operations),
    )


def _refusal(code: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=message, cluster_id="")
