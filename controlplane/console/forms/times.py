"""From when to when charts are drawn."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django import forms

from controlplane.console.forms.base import ConsoleForm
from controlplane.history.resolutions import HOURS

FORM = "%Y-%m-%dT%H:%M"
"""Of moments, as `datetime-local` has them."""


def _moment(label: str, *, required: bool) -> forms.DateTimeField:
    """What is typed is UTC. The script of charts shows it in the browser's time zone, and sends UTC."""
    widget = forms.DateTimeInput({"type": "datetime-local", "data-moment": True}, format=FORM)
    return forms.DateTimeField(label=label, required=required, widget=widget)


class TimesForm(ConsoleForm):
    """Two moments; without the second, up to now."""

    since = _moment("From, UTC", required=True)
    until = _moment("To, UTC", required=False)

    def __init__(self, *args: Any, now: datetime, **options: Any) -> None:
        super().__init__(*args, auto_id="times_%s", **options)
        self._now = now

    def clean(self) -> dict[str, Any]:
        """Refuse what no chart can show."""
        data = super().clean() or self.cleaned_data
        since, until = data.get("since"), data.get("until") or self._now
        if since is None or "until" in self.errors:
            return data
        if since >= self._now:
            self.add_error("since", "This is in the future.")
        elif until <= since:
            self.add_error("until", "This must be later than the beginning.")
        elif since.timestamp() < HOURS.oldest(int(self._now.timestamp())):
            self.add_error("since", "This is too long ago: figures are kept for 400 days.")
        return data

    def wanted(self) -> tuple[datetime, datetime]:
        """The beginning and the end, which is not in the future."""
        until = self.cleaned_data["until"] or self._now
        return self.cleaned_data["since"].astimezone(UTC), min(until, self._now).astimezone(UTC)
