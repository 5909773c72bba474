"""What has become of a change that takes its time: the vendor's FlowId is our operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controlplane.ckafka_api.actions.calls import Call, identity_of
from controlplane.core.models import OperationState
from controlplane.core.selectors import operation_get

if TYPE_CHECKING:
    from collections.abc import Mapping

STATUS: Mapping[str, int] = {OperationState.SUCCEEDED: 0, OperationState.FAILED: 1, OperationState.RUNNING: 2}


def status(call: Call) -> dict[str, Any]:
    """DescribeTaskStatus."""
    operation = operation_get(organisation=call.organisation, operation_id=identity_of("op", call.parameters["FlowId"]))
    return {"Status": STATUS[operation.state], "Output": operation.error}
