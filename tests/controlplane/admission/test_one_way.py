"""Nothing of the product buys or changes an instance but through admission.purchases, or ends one but through endings."""

from __future__ import annotations

import re

from controlplane.env import ROOT

CALL = re.compile(r"\binstance_(create|update)\(")


def test_only_purchases_call_the_services_of_sizes():
    callers = {
        str(path.relative_to(ROOT / "controlplane"))
        for path in (ROOT / "controlplane").rglob("*.py")
        if CALL.search(path.read_text())
    }
    assert callers == {"admission/purchases.py", "instances/services.py"}


ENDING = re.compile(r"\blifecycle\.instance_(delete|destroy)\(")


def test_only_endings_call_the_services_that_end_one():
    """Or what was paid in advance would not be given back as it should."""
    callers = {
        str(path.relative_to(ROOT / "controlplane"))
        for path in (ROOT / "controlplane").rglob("*.py")
        if ENDING.search(path.read_text())
    }
    assert callers == {"admission/endings.py"}
