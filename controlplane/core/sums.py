"""Sentences that tell sums of a whole organisation, and how they read to whoever is for some of its instances, or sees no costs.

A role, or an API key, of some instances or without the scope `billing` changes sizes, and is told what is in the way: not how
much all others together take, nor what the organisation may spend. Why an operation failed, or a policy could do nothing, is
kept as one sentence for everybody who may look at the instance, so that these parts are taken out where it is said. Who asks is
known of the request (`origin.py`); what workers write down and send to owners is whole.
"""

from __future__ import annotations

import re

from controlplane.core.origin import current

_CAP = re.compile(
    r"(?P<title>[a-z ]+): the organisation may have [^()]* \(in use: [^()]*; asked for: [^()]* more\)", re.DOTALL
)
"""As admission/rules.py says it."""
_BUDGET = re.compile(
    r"with more storage this month would cost more than the budget .* of [A-Z]{3} [0-9.,]*[0-9]", re.DOTALL
)
"""As policies/storage.py says it. What a budget is called is its owner's, and may hold anything."""


def are_told() -> bool:
    """Whether whoever asks is told them."""
    return current().sees_whole


def shown(text: str) -> str:
    """`text` as it is; without such sums for whoever is told none."""
    return text if are_told() else without(text)


def without(text: str) -> str:
    """Pure."""
    return _BUDGET.sub(_budget_problem(), _CAP.sub(lambda found: _cap_problem(found["title"]), text))


def _cap_problem(title: str) -> str:
    return f"{title}: the organisation may not have so much"


def _budget_problem() -> str:
    return "with more storage this month would cost more than a budget of the organisation"
