"""What a resource is, and what it works with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from controlplane.terraform.diagnostics import Diagnostic, ProviderError
from controlplane.terraform.schema import STRING, Attribute
from controlplane.terraform.values import UNKNOWN, State, plain
from controlplane.terraform.waiting import DEFAULT_TIMEOUT, operation_awaited, span_s

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.cli.operations import Call
    from controlplane.terraform.rest import Client

ID = Attribute("id", STRING, "what it is imported by", computed=True, settable=False)
INSTANCE_ID = Attribute("instance_id", STRING, "id of the instance", required=True, replaces=True)
TIMEOUTS = Attribute(
    "timeouts",
    STRING,
    f"how long an operation is waited for, such as 45m or 1h30m; by default {DEFAULT_TIMEOUT}",
    nested=tuple(Attribute(name, STRING, f"to {name}") for name in ("create", "update", "delete")),
)


@dataclass(frozen=True, slots=True)
class Doing:
    """One call of Terraform: the connection, and what is written."""

    client: Client
    config: State

    def change(self, call: Call, body: Mapping[str, Any] | None = None, **ids: str) -> Any:
        """A change; null is sent as null. Raises ProviderError."""
        sent = None if body is None else {name: plain(value) for name, value in body.items()}
        return self.client.change(call, sent, **ids)

    def awaited(self, answer: Mapping[str, Any], planned: State, what: str) -> None:
        """An operation that a change has begun, to its end. Raises Failed, Unfinished."""
        written = (planned.get("timeouts") or {}).get(what) or DEFAULT_TIMEOUT
        operation_awaited(self.client, answer["operation_id"], timeout_s=span_s(written) or 1)


class Resource(ABC):
    """One kind of thing. Attributes are the state: what Terraform keeps of it."""

    name: ClassVar[str]
    about: ClassVar[str]
    attributes: ClassVar[tuple[Attribute, ...]]
    codes: ClassVar[Mapping[str, str]] = {}
    """By the code of a refusal without fields: the attribute that it is about."""

    @abstractmethod
    def create(self, doing: Doing, planned: State) -> State:
        """Make it; its state. Raises ProviderError, with what is there already."""

    @abstractmethod
    def read(self, client: Client, state: State) -> State:
        """As it is now. Raises Missing where it is no more, and other ProviderErrors."""

    def update(self, doing: Doing, prior: State, planned: State) -> State:
        """Change it in place. Raises ProviderError."""
        raise NotImplementedError  # each attribute replaces it

    @abstractmethod
    def delete(self, doing: Doing, state: State) -> None:
        """Delete it. Raises Missing where it is no more, and other ProviderErrors."""

    @abstractmethod
    def of_id(self, text: str) -> State:
        """What `read` needs of an id that is imported. Raises ProviderError."""

    def replaced(self, prior: State, planned: State) -> Sequence[str]:
        """Attributes that cannot be changed in this way, but for another one in its place."""
        del prior, planned
        return ()

    def check(self, config: State) -> Sequence[Diagnostic]:
        """What is wrong with what is written, before anybody is asked."""
        return checked(self.attributes, config)


def checked(attributes: Sequence[Attribute], config: State, path: tuple[str, ...] = ()) -> list[Diagnostic]:
    """Words that are none of their attribute's, and spans that are none."""
    found: list[Diagnostic] = []
    for each in attributes:
        value = config.get(each.name)
        if each.nested and isinstance(value, dict):
            found += checked(each.nested, value, (*path, each.name))
        for one in value if isinstance(value, frozenset) else (value,):
            if each.choices and isinstance(one, str) and one not in each.choices:
                detail = f"{each.name} is one of {', '.join(each.choices)}."
                found.append(Diagnostic(f"{one}: there is no such {each.name}", detail, (*path, each.name)))
        if path == (TIMEOUTS.name,) and isinstance(value, str) and span_s(value) is None:
            found.append(Diagnostic(f"{value} is no span of time", "It is like 45m or 1h30m.", (*path, each.name)))
    return found


def given(planned: State, *names: str) -> dict[str, Any]:
    """The members of a request: those that are written, the others are left out (`plain` does so within an object)."""
    return {name: planned[name] for name in names if planned.get(name) is not None and planned[name] is not UNKNOWN}


def parts(text: str, form: str, count: int = 2) -> list[str]:
    """``ins-…/name`` in its parts; the last one may hold anything. Raises ProviderError."""
    found = text.split("/", count - 1)
    if len(found) != count or not all(found):
        raise ProviderError(Diagnostic("That is no id to import", f"{text!r}: it is like {form}."))
    return found
