"""A receiver's side of a signature: the example that stands in docs/subsystems/alarms.md, as it stands there."""

from __future__ import annotations

import base64
import re
from typing import Any

from controlplane.env import ROOT

_TEXT = (ROOT / "docs" / "subsystems" / "alarms.md").read_text()
_EXAMPLE: dict[str, Any] = {}
exec(re.search(r"```python\n(.*?)```", _TEXT, re.DOTALL)[1], _EXAMPLE)  # it is ours


def verified(secret, headers, body) -> bool:
    """`secret`: the text, or the key that it stands for. The clock stands at the message's own time."""
    text = secret if isinstance(secret, str) else "whsec_" + base64.b64encode(secret).decode()
    return _EXAMPLE["is_from_sluice"](text, headers, body, now=int(headers["webhook-timestamp"]))


is_from_sluice = _EXAMPLE["is_from_sluice"]
