"""What can go wrong, as one tree, and what people are shown of it: a sentence at the attribute that it is about.

::

    ProviderError          carries diagnostics, and what has become of the resource all the same
    ├── Refused            the service says no; `status`, `code`
    │   └── Missing        there is nothing of this name
    ├── Away               the service does not answer, or not in time
    ├── Failed             an operation has ended without what it was for
    └── Unfinished         waiting has ended, by its time or by Ctrl-C, before the operation has
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from controlplane.terraform.protocol.messages import tf

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.terraform.schema import Attribute
    from controlplane.terraform.values import State

Path = tuple[str, ...]
HINTS = {
    "deletion_protected": "Set deletion_protection = false and apply that first: a protected instance is never deleted.",
    "price_unconfirmed": "Set confirm_price = true if the price is meant.",
    "storage_below_use": "Set accept_full_storage = true if that is meant.",
    "idempotency_outcome_unknown": "Look whether it is there, and import it if so (terraform import), before you apply again.",
    "forbidden": "The API key's role or limits do not allow it.",
    "unauthenticated": "Set api_key of the provider, or SLUICE_API_KEY, to a key that is valid.",
}
"""By the code of a problem: what to write."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One. `path`: attribute, member, key; empty: of the resource as a whole."""

    summary: str
    detail: str = ""
    path: Path = ()
    is_warning: bool = False

    def message(self) -> Any:
        """As the protocol has it."""
        kind = tf.Diagnostic.WARNING if self.is_warning else tf.Diagnostic.ERROR
        found = tf.Diagnostic(severity=kind, summary=self.summary, detail=self.detail)
        if self.path:
            found.attribute.CopyFrom(path_message(self.path))
        return found


class ProviderError(Exception):
    """Base of the tree. `state`: what is there nevertheless, so that Terraform does not lose it."""

    def __init__(self, *diagnostics: Diagnostic, state: State | None = None) -> None:
        super().__init__("; ".join(f"{each.summary}: {each.detail}" for each in diagnostics))
        self.diagnostics = diagnostics
        self.state = state


class Refused(ProviderError):  # noqa: N818  # the tree reads as what happened
    """The service has understood, and says no. `problem`: its document (RFC 9457)."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        title, detail = str(problem.get("title") or f"The service answers {status}"), str(problem.get("detail") or "")
        super().__init__(Diagnostic(title, detail))
        self.status = status
        self.problem = problem
        self.code = str(problem.get("code") or "")

    def at(self, attributes: Sequence[Attribute], codes: Mapping[str, str]) -> tuple[Diagnostic, ...]:
        """One diagnostic for each attribute that it is about. `codes`: which attribute a code belongs to."""
        title, hint = self.diagnostics[0].summary, HINTS.get(self.code, "")
        fields = [each for each in self.problem.get("errors") or () if isinstance(each, dict)]
        found = [
            Diagnostic(
                title, _joined(str(each.get("detail", "")), hint), path_of(attributes, str(each.get("field", "")))
            )
            for each in fields
        ]
        whole = _joined(self.diagnostics[0].detail, hint)
        exceeded = [str(each.get("resource", "")) for each in self.problem.get("exceeded") or ()]
        found += [Diagnostic(title, whole, path_of(attributes, resource)) for resource in exceeded]
        return tuple(found) or (Diagnostic(title, whole, path_of(attributes, codes.get(self.code, ""))),)


class Missing(Refused):
    """Nothing of this name belongs to the caller."""


class Away(ProviderError):  # noqa: N818
    """Nobody answers."""


class Failed(ProviderError):  # noqa: N818
    """An operation has failed."""


class Unfinished(ProviderError):  # noqa: N818
    """It goes on, and nobody waits for it any more."""


def refused(status: int, problem: Mapping[str, Any]) -> Refused:
    """The error for a problem document."""
    kind = Missing if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE) else Refused
    return kind(status, problem)


def path_of(attributes: Sequence[Attribute], field: str) -> Path:
    """The attribute that REST's dotted `field` is about, as far as it can be pointed at: no place within a set can."""
    found: list[str] = []
    rest = field
    while rest:
        name, _, behind = rest.partition(".")
        attribute = next((each for each in attributes if each.name == name), None)
        if attribute is None:
            break
        found.append(name)
        if attribute.nested:
            attributes, rest = attribute.nested, behind
            continue
        if isinstance(attribute.type, tuple) and attribute.type[0] == "map" and behind:
            found.append(f"[{behind}]")
        break
    return tuple(found)


def path_message(path: Path) -> Any:
    """``("config", "[retention.ms]")`` as steps: a name in brackets is the key of a map."""
    step = tf.AttributePath.Step
    steps = [
        step(element_key_string=each[1:-1]) if each.startswith("[") else step(attribute_name=each) for each in path
    ]
    return tf.AttributePath(steps=steps)


def _joined(*sentences: str) -> str:
    return "\n\n".join(each for each in sentences if each)
