"""What a broker has made of the instance specs.

``/sluice/applied/<broker>``, JSON version 1::

    {"version": 1, "boot": "…", "instances": {"ins-k3v9x2qa": {"generation": 7, "problem": null}}}

The node is ephemeral: a broker that is gone has applied nothing. `problem` is a sentence where the generation could
not be applied whole, such as a port that another process holds; the control plane then picks another port. What is the matter
with routes is said of each, "route r2: …; route r3: …": the others are served.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass

from quota.contracts.instance import ContractError

VERSION = 1
_INSTANCES_PER_STEP = 32
"""About 100 microseconds."""


@dataclass(frozen=True, slots=True)
class AppliedInstance:
    """The generation of one instance that a broker serves."""

    generation: int
    problem: str | None = None

    def problem_of(self, route: str) -> str | None:
        """What is the matter with one route, or with the whole instance."""
        if self.problem is None or not self.problem.startswith("route "):
            return self.problem
        own = [each for each in self.problem.split("; ") if each.startswith(f"route {route}: ")]
        return "; ".join(each.removeprefix(f"route {route}: ") for each in own) or None


@dataclass(frozen=True, slots=True)
class Applied:
    """All instances of one broker."""

    boot: str
    instances: Mapping[str, AppliedInstance]

    def to_json(self) -> bytes:
        """The document, with sorted keys."""
        steps = applied_in_steps(self.boot, self.instances.items())
        try:
            while True:
                next(steps)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]

    @classmethod
    def from_json(cls, data: bytes) -> Applied:
        """Parse a document. Raises ContractError."""
        try:
            document = json.loads(data)
            if document["version"] > VERSION:
                raise ContractError(f"applied: version {document['version']} is newer than {VERSION}")
            return cls(
                boot=document["boot"],
                instances={
                    instance: AppliedInstance(entry["generation"], entry["problem"])
                    for instance, entry in document["instances"].items()
                },
            )
        except ContractError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ContractError(f"applied: {type(error).__name__}: {error}") from error


def applied_in_steps(boot: str, instances: Iterable[tuple[str, AppliedInstance]]) -> Generator[None, None, bytes]:
    """The document of `Applied.to_json`, with a pause after some of the instances: a broker may serve thousands."""
    entries = {}
    for count, (instance, applied) in enumerate(instances, 1):
        entries[instance] = _text({"generation": applied.generation, "problem": applied.problem})
        if not count % _INSTANCES_PER_STEP:
            yield
    members = ",".join(f"{_text(instance)}:{entries[instance]}" for instance in sorted(entries))
    return f'{{"boot":{_text(boot)},"instances":{{{members}}},"version":{VERSION}}}'.encode()


_text = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
