"""Nothing of the product buys or changes an instance but through admission.purchases."""

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
