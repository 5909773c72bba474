"""What a run of a load says, in words of its page: the program names members of REST, of which people see labels.

Only where the program speaks of them: a topic may be called `new_topic`. The sentences that come of it are in `wording.NAMES`.
"""

from __future__ import annotations

import re

LABELS = {
    r"\bnew_topic(?= goes on with the new one)": "New topic",
    r"\bskip_expired(?= goes on behind them| loads the rest of the range)": "Skip what has expired",
    r"\boffsets(?=, which takes the place of)": "These offsets again",
    r"(?<=a JSON object with members: )schema raw(?= loads them)": "None: keys and values as they are",
}
"""Labels of `forms/loads.py`."""


def in_page_words(said: str) -> str:
    """In English still: a page translates it behind this."""
    for member, label in LABELS.items():
        said = re.sub(member, f"“{label}”", said)
    return said
