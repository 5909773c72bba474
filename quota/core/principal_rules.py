r"""From a certificate's subject to the name of a principal, as Kafka's ``ssl.principal.mapping.rules``.

A rule is ``DEFAULT`` (the whole subject) or ``RULE:pattern/replacement/`` with ``L`` or ``U`` behind it (the result in lower or
upper case); ``\\/`` is a slash within a part. The first rule whose pattern matches the whole subject decides; when none does
the client is refused. The pattern is then replaced wherever it is found, as Java's ``replaceAll`` does it (so ``.*`` is
replaced twice: once as all of it and once as the nothing behind). ``$1`` is a group; one that there is not stands for itself.

Tenants write the rules and clients' authorities the subjects, and a broker matches them: so patterns are RE2's, which
match in linear time. What it does not have (looking ahead and behind, back references, possessive quantifiers) is refused
with a sentence when the rule is written. Linear is not little: each instruction of a pattern may be looked at for each character,
and replacing begins anew behind each match. So patterns, subjects, names and the number of matches are bounded too, and nobody
is who needs more.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import re2

DEFAULT = "DEFAULT"
MOST_RULES = 20
LONGEST_RULE = 512
LONGEST_SUBJECT = 1_024
"""Characters. A longer one matches no rule, and a longer name is none."""
MOST_MATCHES = 4
"""Of a pattern in a subject: a rule that is meant to name somebody has one or two."""
_MEMORY = 2**15
"""Of one pattern, with what matching it makes: 512 instructions of RE2's, a dot being about ten. One match that needs all of them
on the longest subject takes up to 30 ms. It is done beside the loop (RE2 lets other threads run meanwhile)."""

_RULE = re.compile(r"RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)", re.DOTALL)
_OF_REPLACEMENT = re.compile(r"\\(.)|\$(\d+)|(\$|\\)|([^$\\]+)", re.DOTALL)
_CASES: dict[str, Callable[[str], str]] = {"": str, "L": str.lower, "U": str.upper}


class RuleError(ValueError):
    """A rule that cannot be used; the text says why."""


class NoRuleError(Exception):
    """No rule applies to a subject."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: Any
    replacement: tuple[str | int, ...]  # texts and numbers of groups
    case: str

    def apply(self, subject: str) -> str | None:
        """The name; None: it does not apply. Raises NoRuleError where there is too much to replace."""
        if self.pattern.fullmatch(subject) is None:
            return None
        done, at, copied, matches = [], 0, 0, 0
        while at <= len(subject) and (found := self.pattern.search(subject, at)) is not None:
            matches += 1
            if matches > MOST_MATCHES:
                raise NoRuleError(f"its rule replaces more than {MOST_MATCHES} parts of {subject}")
            done.append(subject[copied : found.start()])
            done += [part if isinstance(part, str) else found.group(part) or "" for part in self.replacement]
            copied = found.end()
            at = copied + (found.start() == copied)  # behind nothing, from the next character on
        return _CASES[self.case]("".join(done) + subject[copied:])


class PrincipalMapping:
    """Rules in their order; none at all are DEFAULT. Raises RuleError."""

    def __init__(self, rules: Sequence[str]) -> None:
        if len(rules) > MOST_RULES:
            raise RuleError(f"there may be {MOST_RULES} rules, not {len(rules)}")
        self._rules = [_parsed(rule.strip()) for rule in rules] or [None]

    def name(self, subject: str) -> str:
        """What the principal is called, without ``User:``. Raises NoRuleError."""
        if len(subject) <= LONGEST_SUBJECT:
            for rule in self._rules:
                if rule is None:
                    return subject
                name = rule.apply(subject)
                if name is not None:
                    return _bounded(name, subject)
        raise NoRuleError(f"no rule applies to {subject[:LONGEST_SUBJECT]}")


def _bounded(name: str, subject: str) -> str:
    if len(name) > LONGEST_SUBJECT:
        raise NoRuleError(f"the name that its rule makes has more than {LONGEST_SUBJECT} characters: {subject}")
    return name


@functools.lru_cache(maxsize=1024)
def mapping_of(rules: tuple[str, ...]) -> PrincipalMapping:
    """The mapping by these rules, made once. Raises RuleError."""
    return PrincipalMapping(rules)


def rules_problem(rules: Sequence[str]) -> str | None:
    """Why these cannot be a route's rules, in a sentence; None: they can."""
    try:
        PrincipalMapping(rules)
    except RuleError as error:
        return str(error)
    return None


def _parsed(rule: str) -> _Rule | None:
    if rule == DEFAULT:
        return None
    if len(rule) > LONGEST_RULE:
        raise RuleError(f"a rule may have {LONGEST_RULE} characters, not {len(rule)}")
    found = _RULE.fullmatch(rule)
    if found is None:
        raise RuleError(f"a rule is DEFAULT or RULE:pattern/replacement/, with L or U behind it, not {rule!r}")
    pattern, replacement, case = found.groups()
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise RuleError(f"{rule!r}: {said}") from None
    return _Rule(compiled, _replacement(replacement, compiled.groups, rule), case)


def _replacement(text: str, groups: int, rule: str) -> tuple[str | int, ...]:
    parts: list[str | int] = []
    for escaped, digits, lone, plain in _OF_REPLACEMENT.findall(text):
        if lone:
            raise RuleError(f"{rule!r}: in a replacement, $ has the number of a group behind it, or \\ before it")
        if not digits:
            parts.append(escaped or plain)
            continue
        number = digits[:1]
        for digit in digits[1:]:  # as many digits as there are groups
            if int(number + digit) > groups:
                break
            number += digit
        if int(number) <= groups:
            parts += [int(number), digits[len(number) :]]
        elif groups:
            parts.append(f"${digits}")
        else:
            raise RuleError(f"{rule!r}: its pattern has no groups")
    return tuple(parts)
