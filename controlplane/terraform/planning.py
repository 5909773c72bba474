"""What a resource is going to be, of what it is, what Terraform proposes and what is written. Pure.

Terraform merges what is written with what is; here is added what it cannot know: what the service says only afterwards, two
spellings of one thing, and what cannot be changed in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from controlplane.terraform.values import UNKNOWN, State, is_known

if TYPE_CHECKING:
    from controlplane.terraform.schema import Attribute

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """`replaced`: the attributes that are the reason for another one in its place."""

    planned: State
    replaced: tuple[Path, ...] = ()


def planned(attributes: tuple[Attribute, ...], prior: State | None, proposed: State) -> Plan:
    """The plan. `proposed` has what is written, and of what is not and the service says, what is."""
    if prior is None:
        return Plan({each.name: _of_new(each, proposed.get(each.name)) for each in attributes})
    found = {each.name: _of_present(each, prior.get(each.name), proposed.get(each.name)) for each in attributes}
    replaced = [(each.name,) for each in attributes if each.replaces and found[each.name] != prior.get(each.name)]
    return Plan(found, tuple(replaced))


def settled(attributes: tuple[Attribute, ...], answer: State, reference: State) -> State:
    """What the service says, in the words of `reference` where both mean the same: a difference of spelling is no change."""
    return {each.name: _settled(each, answer.get(each.name), reference.get(each.name)) for each in attributes}


def kept(attributes: tuple[Attribute, ...], answer: State, plan: State) -> State:
    """After a change: `answer`, but for what only the service says and the plan already knew.

    Terraform takes another value than the planned one for an error of the provider. If it has become another one all the same
    the next look shows it.
    """
    only_told = [each.name for each in attributes if not each.settable and is_known(plan.get(each.name))]
    return {**settled(attributes, answer, plan), **{name: plan.get(name) for name in only_told}}


def changed(attributes: tuple[Attribute, ...], prior: State, plan: State, *names: str) -> State:
    """Of these attributes those that are to be another, with what they are to be."""
    known = {each.name: each for each in attributes}
    return {
        name: plan.get(name)
        for name in names
        if is_known(plan.get(name)) and not known[name].same(prior.get(name), plan.get(name))
    }


def _of_new(attribute: Attribute, value: Any) -> Any:
    if attribute.write_only:
        return None
    if attribute.nested and isinstance(value, dict):
        return {each.name: _of_new(each, value.get(each.name)) for each in attribute.nested}
    return UNKNOWN if value is None and attribute.computed else value


def _of_present(attribute: Attribute, prior: Any, value: Any) -> Any:
    if attribute.write_only:
        return None
    if is_known(value) and prior is not None and attribute.same(prior, value):
        return prior
    if attribute.nested and isinstance(value, dict):
        before = prior if isinstance(prior, dict) else {}
        return {
            each.name: _of_present(each, before.get(each.name), value.get(each.name))
            if each.name in before
            else _of_new(each, value.get(each.name))
            for each in attribute.nested
        }
    return value


def _settled(attribute: Attribute, answer: Any, reference: Any) -> Any:
    if not is_known(reference) and isinstance(reference, dict) and isinstance(answer, dict):
        return {each.name: _settled(each, answer.get(each.name), reference.get(each.name)) for each in attribute.nested}
    return reference if is_known(reference) and attribute.same(answer, reference) else answer
