"""From an action's name and parameters to its answer: what may be asked, by whom, and about which instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controlplane.ckafka_api import shapes
from controlplane.ckafka_api.actions.calls import OUR_PARAMETERS, Action, Call, instance_found
from controlplane.ckafka_api.actions.table import TABLE
from controlplane.ckafka_api.errors import CkafkaError, Code
from controlplane.core.dry_runs import taken_back

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.accounts.selectors import Caller


RESULT = "Result"


def action_of(name: str) -> Action:
    """Raises CkafkaError: the SDK does not know it, or this service does not have it."""
    if name not in shapes.ACTIONS:
        raise CkafkaError(Code.WRONG_ACTION, f"There is no action `{name}`.")
    if name not in TABLE:
        raise CkafkaError(Code.UNSUPPORTED, f"The action `{name}` is not supported by this service.")
    return TABLE[name]


def call_of(name: str, action: Action, caller: Caller, document: Mapping[str, Any]) -> Call:
    """What is asked for, checked as far as the vendor's models go. Raises CkafkaError, Forbidden."""
    caller.admit(changes=action.changes)
    shapes.check(f"{name}Request", document, also=OUR_PARAMETERS)
    parameters = without_nulls(document)
    for required in (*(("InstanceId",) if action.of_instance else ()), *action.required):
        if parameters.get(required) in (None, ""):
            raise CkafkaError(Code.MISSING_PARAMETER, f"The parameter `{required}` is missing.")
    if action.changes and not caller.may_change:
        raise CkafkaError(Code.UNAUTHORIZED, "A viewer may look and change nothing.")
    if not action.of_instance:
        return Call(caller, parameters, None)
    return Call(caller, parameters, instance_found(caller.organisation, parameters["InstanceId"]))


def carried_out(name: str, action: Action, call: Call) -> Any:
    """The answer's `Result`, or all its members where it has none: see `answered`.

    Raises CkafkaError, also DryRunOperation where only that was asked, and the service's errors.
    """
    if not call.parameters.get("DryRun", False):
        return _completed(name, action.handle(call))
    if action.check is not None:
        action.check(call)
    elif action.changes and not action.can_be_taken_back:
        raise CkafkaError(Code.UNSUPPORTED, f"The action `{name}` has no dry run.")
    else:
        with taken_back():
            action.handle(call)
    raise CkafkaError(Code.DRY_RUN, "The request would have succeeded; DryRun was given, and nothing was changed.")


def without_nulls(value: Any) -> Any:
    """A null means what leaving out means, at any depth."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value]
    return value


def _completed(name: str, result: Any) -> Any:
    """With all that its shape has; None: of an action whose answer has no members."""
    shape = f"{name}Response"
    if RESULT in shapes.SHAPES[shape]:
        return shapes.filled(shape, {RESULT: result})[RESULT]
    members = shapes.filled(shape, result or {})
    del members["RequestId"]
    return members or None


def answered(name: str, result: Any) -> dict[str, Any]:
    """The members of an answer, of what `carried_out` has given."""
    if result is None:
        return {}
    return {RESULT: result} if RESULT in shapes.SHAPES[f"{name}Response"] else result
