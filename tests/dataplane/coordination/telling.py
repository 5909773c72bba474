"""Writing down what a coordinator does, by virtual time, so that a whole story can be compared as text."""

import re
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from textwrap import wrap

from dataplane.coordination.effects import Begin, CancelTimer, Reply, SetTimer

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
WIDTH = 128
_EPOCH_TIMES = {
    "current_state_timestamp",
    "commit_timestamp",
    "transaction_last_update_timestamp_ms",
    "transaction_start_timestamp_ms",
    "started_ms",
    "updated_ms",
}


class Telling:
    """For a story that is also a world with a `loop`."""

    def entitle(self, title):
        self.lines = [title, "=" * len(title), ""]
        self._last = None
        self._ids = {}  # numbers for UUIDs
        self._begin_ms = 0

    def begins_now(self):
        self._begin_ms = self.loop.clock.now_ms()

    def tell(self, text, indent=0):
        text = _UUID.sub(lambda found: str(self._ids.setdefault(found.group(), len(self._ids) + 1)), text)
        stamp = f"{self._seconds(self.loop.clock.now_ms()):7.2f}"
        first = f"{stamp if stamp != self._last else '':7}  {' ' * indent}"
        self._last = stamp
        self.lines += wrap(text, WIDTH, initial_indent=first, subsequent_indent=" " * (13 + indent))

    def _seconds(self, now_ms):
        return (now_ms - self._begin_ms) / 1000

    def text(self):
        return "\n".join(self.lines) + "\n"

    def effect(self, effect):
        if isinstance(effect, Reply):
            return f"reply to token {effect.token}"
        if isinstance(effect, SetTimer):
            return f"timer {effect.name}: {self.shown(effect.event)} in {effect.delay_ms / 1000:g} s"
        if isinstance(effect, CancelTimer):
            return f"no timer {effect.name}"
        if isinstance(effect, Begin):
            return f"begin {type(effect.work).__name__}"
        return f"store, then {type(effect.then).__name__}"

    def shown(self, value, name=""):
        """On one line; fields that are as they are by default are left out."""
        if name in _EPOCH_TIMES and isinstance(value, int) and value > 0:
            return f"{self._seconds(value):.2f} s"
        if is_dataclass(value):
            shown = [f"{f.name}={self.shown(getattr(value, f.name), f.name)}" for f in fields(value) if _says(value, f)]
            return f"{type(value).__name__}({', '.join(shown)})"
        if isinstance(value, Enum):
            return value.name
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self.shown(k)}: {self.shown(v)}" for k, v in value.items()) + "}"
        if isinstance(value, tuple):
            return f"[{', '.join(map(self.shown, value))}]"
        return repr(value)


def _says(value, field):
    if getattr(value, field.name) is None:
        return False
    default = field.default_factory() if field.default_factory is not MISSING else field.default
    return field.init and getattr(value, field.name) != default
