"""What AlterConfigs and IncrementalAlterConfigs make of the overrides of one resource. Pure.

A change sets, deletes, or adds to and takes from a list; a list that has no override begins as its default. The new
overrides are judged as a whole where the kind of resource is known; here it is only the form of the request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from dataplane.protocol.errors import ApiError, ErrorCode

MAX_VALUE_LENGTH = 8192
"""Overrides of an entity are one small node, read by every broker."""


class Operation(IntEnum):
    """What IncrementalAlterConfigs does to one setting; the numbers are Kafka's."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Change:
    """One configuration in a request; `operation` as it was sent."""

    name: str
    value: str | None
    operation: int = Operation.SET


def check_form(changes: Sequence[Change]) -> None:
    """Raises ApiError for what is wrong whatever the resource: a name twice, no value, a value beyond all measure."""
    doubled = [name for name, times in Counter(change.name for change in changes).items() if times > 1]
    if doubled:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"configurations named more than once: {_list(doubled)}")
    unknown = [change.name for change in changes if change.operation not in tuple(Operation)]
    if unknown:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"an unknown operation was asked for: {_list(unknown)}")
    valueless = [c.name for c in changes if c.value is None and c.operation != Operation.DELETE]
    if valueless:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"a value is missing (null is none): {_list(valueless)}")
    if any(len(change.value or "") > MAX_VALUE_LENGTH for change in changes):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"a value has at most {MAX_VALUE_LENGTH} characters")


def altered(
    before: Mapping[str, str],
    changes: Sequence[Change],
    *,
    list_default: Callable[[str], str | None],
    replace: bool,
) -> dict[str, str]:
    """The overrides afterwards. `replace`: nothing else of `before` stays (AlterConfigs).

    `list_default` is the value of a list that has no override; None: it is not a list. Raises ApiError.
    """
    after = {} if replace else dict(before)
    for change in changes:
        name, value = change.name, change.value or ""
        match change.operation:
            case Operation.SET:
                after[name] = value
            case Operation.DELETE:
                after.pop(name, None)
            case _:
                after[name] = _list_with(after.get(name), list_default(name), change)
    return after


def touched(changes: Sequence[Change]) -> list[str]:
    """Names that have a new value afterwards."""
    return [change.name for change in changes if change.operation != Operation.DELETE]


def _list_with(present: str | None, default: str | None, change: Change) -> str:
    if default is None:
        verb = "added to" if change.operation == Operation.APPEND else "taken from"
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{change.name} is not a list: nothing can be {verb} it")
    items = _items(default if present is None else present)
    named = _items(change.value or "")
    if change.operation == Operation.APPEND:
        items += [item for item in named if item not in items]
    else:
        items = [item for item in items if item not in named]
    return ",".join(items)


def _items(text: str) -> list[str]:
    return list(dict.fromkeys(item for part in text.split(",") if (item := part.strip())))


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)
