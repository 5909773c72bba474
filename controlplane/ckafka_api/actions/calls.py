"""What every action gets and gives, and the words that several of them share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from controlplane.ckafka_api.errors import CkafkaError, Code
from controlplane.core.errors import NotFound
from controlplane.instances.selectors import instance_get

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from controlplane.accounts.selectors import Caller
    from controlplane.core.models import Operation
    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation

OUR_PARAMETERS: Mapping[str, str] = {"DryRun": "bool", "ConfirmPrice": "bool", "AcceptFullStorage": "bool"}
"""Beside those of the SDK's models; its `call_json` sends them. docs/subsystems/ckafka-api.md says what they mean."""


@dataclass(frozen=True, slots=True)
class Call:
    """One action asked for by somebody. Parameters have their types and no nulls; `instance` is that of InstanceId."""

    caller: Caller
    parameters: Mapping[str, Any]
    found: Instance | None

    @property
    def organisation(self) -> Organisation:
        """Whose data it is."""
        return self.caller.organisation

    @property
    def instance(self) -> Instance:
        """Of an action that is about one instance."""
        assert self.found is not None
        return self.found

    @property
    def place(self) -> dict[str, Any]:
        """What services that change an instance want to know first."""
        return {"organisation": self.organisation, "actor": self.caller.actor, "instance_id": self.instance.id}

    @property
    def view(self) -> dict[str, Any]:
        """The same for selectors."""
        return {"organisation": self.organisation, "instance_id": self.instance.id}


def instance_found(organisation: Organisation, instance_id: str) -> Instance:
    """One of theirs. Raises CkafkaError."""
    try:
        return instance_get(organisation=organisation, instance_id=instance_id)
    except NotFound as error:
        raise CkafkaError(Code.NO_INSTANCE, error.detail) from error


@dataclass(frozen=True, slots=True)
class Action:
    """`handle` gives the answer's `Result`, with the members that are known (`shapes.filled` adds the rest).

    Of an answer that has other members than `Result`, it gives these.
    """

    handle: Callable[[Call], Any]
    required: Sequence[str] = ()
    changes: bool = False
    of_instance: bool = True  # InstanceId names the one that it is about, and must be there
    can_be_taken_back: bool = False  # all that it does stands in the database: DryRun does it, and takes it back
    check: Callable[[Call], Any] | None = None  # raises what `handle` would raise: DryRun of what does more than that


def reading(handle: Callable[[Call], Any], *required: str, of_instance: bool = True) -> Action:
    """An action that changes nothing."""
    return Action(handle, required, of_instance=of_instance)


def changing(handle: Callable[[Call], Any], *required: str, **members: Any) -> Action:
    """An action that viewers may not; `members` are other members of Action."""
    return Action(handle, required, changes=True, **members)


def offered(parameters: Mapping[str, Any], values: Mapping[str, Sequence[object]]) -> None:
    """Of these parameters, only these values mean something here: any other is refused rather than ignored."""
    for name, allowed in values.items():
        if name in parameters and parameters[name] not in allowed:
            raise CkafkaError(Code.UNSUPPORTED, f"{name} is not offered here{_but(allowed)}.")


def _but(allowed: Sequence[object]) -> str:
    return f", but for {' and '.join(repr(value) for value in allowed)}" if allowed else ""


def renamed(parameters: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Those that are given, by their names in the service."""
    return {ours: parameters[theirs] for theirs, ours in names.items() if theirs in parameters}


def page_of(parameters: Mapping[str, Any], *, default: int, most: int) -> slice:
    """Offset and Limit. Raises CkafkaError."""
    offset, limit = parameters.get("Offset", 0), parameters.get("Limit", default)
    if offset < 0 or not 0 < limit <= most:
        raise CkafkaError(Code.INVALID_VALUE, f"Offset must be at least 0, Limit at least 1 and at most {most}.")
    return slice(offset, offset + limit)


def moment_of(text: str) -> datetime:
    """Seconds or milliseconds since 1970, or a date and time, of UTC where no zone is said. Raises CkafkaError."""
    try:
        if text.isdigit():
            seconds = int(text) / (1000 if len(text) > 11 else 1)  # seconds have 10 digits until 2286
            return datetime.fromtimestamp(seconds, UTC)
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise CkafkaError(Code.INVALID_VALUE, f"{text!r} is no time, such as 2026-01-31 18:00:00.") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def done(flow_id: int | None = None) -> dict[str, Any]:
    """JgwOperateResponse: it was done, or is being done by this task."""
    data = None if flow_id is None else {"FlowId": flow_id}
    return {"ReturnCode": "0", "ReturnMessage": "ok", "Data": data}


def number_of(identity: str) -> int:
    """An id of ours as the vendor's whole number: its twelve letters are one of base 36, below 2^63. And back: `identity_of`."""
    return int(identity.rpartition("-")[2], 36)


def identity_of(prefix: str, number: int) -> str:
    """Such as ``op-8zk2m4x0q1ab``; a number that is none of ours gives an id that nothing has."""
    letters = ""
    while number > 0:
        number, rest = divmod(number, 36)
        letters = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + letters
    return f"{prefix}-{letters.zfill(12)}"


def flow_id(operation: Operation) -> int:
    """What DescribeTaskStatus is asked about."""
    return number_of(operation.id)
