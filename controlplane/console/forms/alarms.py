"""Rules of alarms, silences, receivers."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from controlplane.alarms.delivery.targets import LONGEST_URL
from controlplane.alarms.delivery.words import duration_text
from controlplane.alarms.models import ReceiverKind
from controlplane.alarms.rules import FIGURES, LONGEST_DURATION_S, LONGEST_GROUP, OF_GROUPS, OF_TOPICS, REASONS
from controlplane.alarms.services import RULE
from controlplane.console.forms.base import ConsoleForm, GuardedForm, OnceForm, in_words, plain, ruled
from controlplane.console.templatetags.console import amount
from controlplane.console.wording import filled, worded
from controlplane.core.errors import ConcurrentChange
from controlplane.core.text import LONGEST_NAME, name_problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.alarms.models import Alarm, Receiver

MINUTE_S, HOUR_S = 60, 3600
LONGEST_TOPIC = 249
NEVER = 0
REPEATS = (15 * MINUTE_S, HOUR_S, 4 * HOUR_S, 24 * HOUR_S)
SILENCES = (HOUR_S, 4 * HOUR_S, 24 * HOUR_S, 7 * 24 * HOUR_S, 30 * 24 * HOUR_S)
COMPARED_WITH = ("comparison", "threshold", "group", "topic")
"""Members of a rule that mean something for what it watches alone."""
COMPARED = (("at_least", "at least"), ("above", "above"), ("at_most", "at most"), ("below", "below"))


def _plain(**attributes: str) -> forms.TextInput:
    return forms.TextInput({"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off", **attributes})


def _figures(**of: bool) -> list[tuple[str, str]]:
    """Those that name nothing, or of a kind (`of_group`, `of_topic`), with the units in which a threshold is typed."""
    wanted = {"of_group": False, "of_topic": False, **of}
    return [
        (name, _figure(name))
        for name, figure in FIGURES.items()
        if (figure.of_group, figure.of_topic) == (wanted["of_group"], wanted["of_topic"])
    ]


def _figure(name: str) -> str:
    title, unit = str(worded(FIGURES[name].title)), FIGURES[name].typed.unit
    return f"{title}, {worded(unit)}" if unit else title


class WatchSelect(forms.Select):
    """A select whose groups have a class each, by their numbers: what is beside it shows itself for figures only."""

    template_name = "console/parts/watch_select.html"


class AlarmForm(OnceForm, GuardedForm):
    """What is watched, when it fires, and who is told: of a new alarm, or of `alarm`."""

    refusals: ClassVar = {"duration_s": "duration_min", "repeat_s": "repeat_s"}

    name = forms.CharField(label="Name", max_length=LONGEST_NAME, validators=[ruled(name_problem)], widget=_plain())
    watch = forms.ChoiceField(
        label="Fires when",
        choices=[
            ("Health", list(REASONS.items())),
            ("Figures", _figures()),
            ("Figures of a consumer group", _figures(of_group=True)),
            ("Figures of a topic", _figures(of_topic=True)),
        ],
        initial="storage_nearly_full",
        widget=WatchSelect,
    )
    comparison = forms.ChoiceField(label="Is", choices=COMPARED, required=False)
    threshold = forms.FloatField(
        label="Threshold", required=False, widget=forms.NumberInput({"step": "any", "inputmode": "decimal"})
    )
    group = forms.CharField(
        label="Consumer group",
        max_length=LONGEST_GROUP,
        required=False,
        strip=False,
        help_text="Its name as consumers give it. It need not be there yet.",
        widget=_plain(),
    )
    topic = forms.CharField(
        label="Topic",
        max_length=LONGEST_TOPIC,
        required=False,
        help_text="It need not be there yet.",
        widget=_plain(),
    )
    duration_min = forms.FloatField(
        label="For at least",
        min_value=0,
        max_value=LONGEST_DURATION_S / MINUTE_S,
        initial=0,
        help_text="0: it fires at the first check that finds it. Alarms are checked every 30 seconds.",
        widget=forms.NumberInput({"step": "any", "inputmode": "decimal"}),
    )
    repeat_s = forms.TypedChoiceField(label="Repeat the message while it fires", coerce=int, initial=NEVER)
    tell_no_data = forms.BooleanField(
        label="Tell when there are no values",
        required=False,
        help_text="After 90 seconds without a value, and when there are values again.",
    )
    receivers = forms.MultipleChoiceField(label="Who is told", required=False, widget=forms.CheckboxSelectMultiple)
    enabled = forms.BooleanField(label="Switched on", required=False, initial=True)

    def __init__(
        self,
        data: Any = None,
        *,
        receivers: Sequence[Receiver],
        alarm: Alarm | None = None,
        suggested: Mapping[str, str] | None = None,
    ) -> None:
        now = {} if alarm is None else {name: getattr(alarm, name) for name in RULE}
        super().__init__(data, now=now, initial=suggested if alarm is None else _initial(alarm))
        self._alarm = alarm
        self.fields["watch"].choices = [  # type: ignore[attr-defined]
            (worded("Health"), in_words(REASONS.items())),
            (worded("Figures"), _figures()),
            (worded("Figures of a consumer group"), _figures(of_group=True)),
            (worded("Figures of a topic"), _figures(of_topic=True)),
        ]
        for name in ("threshold", "group", "topic"):  # of a figure; of a group's; of a topic's
            self.fields[name].needed_by_choice = True  # type: ignore[attr-defined]
        repeats = sorted({*REPEATS, *([alarm.repeat_s] if alarm is not None and alarm.repeat_s else [])})
        self.fields["repeat_s"].choices = [  # type: ignore[attr-defined]
            (NEVER, worded("Never")),
            *((seconds, filled("Every {time}", time=duration_text(seconds))) for seconds in repeats),
        ]
        self.fields["receivers"].choices = [  # type: ignore[attr-defined]
            (each.pk, _told(each, receivers) + ("" if each.is_confirmed else worded(", not confirmed yet")))
            for each in receivers
        ]

    def clean_threshold(self) -> float | None:
        """In its figure's own unit. What is too much is said in the unit in which it was typed."""
        typed, figure = self.cleaned_data["threshold"], FIGURES.get(self.cleaned_data.get("watch", ""))
        if typed is None or figure is None:
            return typed
        size = figure.typed.size
        if not 0 <= typed * size <= figure.most:
            raise forms.ValidationError(filled("Must be from 0 to {most}.", most=amount(figure.most / size)))
        return float(typed) if size == 1 else round(typed * size, 3)

    def wanted(self) -> dict[str, Any]:
        """What `alarm_create` takes."""
        data = self.cleaned_data
        is_figure = data["watch"] in FIGURES
        return {
            "name": data["name"],
            "watch": data["watch"],
            "comparison": data["comparison"] if is_figure else None,
            "threshold": data["threshold"] if is_figure else None,
            "group": data["group"] if data["watch"] in OF_GROUPS else None,
            "topic": data["topic"] if data["watch"] in OF_TOPICS else None,
            "duration_s": round(data["duration_min"] * MINUTE_S),
            "repeat_s": data["repeat_s"] or None,
            "tell_no_data": data["tell_no_data"],
            "receivers": data["receivers"],
            "enabled": data["enabled"],
        }

    @property
    def changes(self) -> dict[str, Any]:
        """Of an alarm that is there, what `alarm_update` takes. Raises ConcurrentChange."""
        typed = self.wanted()
        found = self.changed(typed)
        if "watch" in found:
            return {**found, **{name: typed[name] for name in COMPARED_WITH}}
        if (
            self._alarm is not None
            and self._alarm.watch != typed["watch"]
            and not found.keys().isdisjoint(COMPARED_WITH)
        ):
            raise ConcurrentChange("somebody else has changed what the alarm watches")  # 90 of % is no 90 of bytes
        return found


def _initial(alarm: Alarm) -> dict[str, Any]:
    minutes = alarm.duration_s / MINUTE_S
    typed = None
    if alarm.threshold is not None:
        typed = round(
            alarm.threshold / FIGURES[alarm.watch].typed.size, 14
        )  # so that it is the same when it comes back
    return {
        "name": alarm.name,
        "watch": alarm.watch,
        "comparison": alarm.comparison,
        "threshold": plain(typed),
        "group": alarm.group or "",
        "topic": alarm.topic or "",
        "duration_min": plain(round(minutes, 4)),
        "repeat_s": alarm.repeat_s or NEVER,
        "tell_no_data": alarm.tell_no_data,
        "receivers": alarm.receivers,
        "enabled": alarm.enabled,
    }


def _told(receiver: Receiver, receivers: Sequence[Receiver]) -> str:
    """By name and address; of several that are called the same at the same host (there may be older ones) the id as well."""
    shown = f"{receiver.name} ({receiver.address})"
    others = [each for each in receivers if (each.name, each.address) == (receiver.name, receiver.address)]
    return shown if len(others) == 1 else f"{shown}, {receiver.pk}"


class SilenceForm(ConsoleForm):
    """For how long messages are held back."""

    silence_s = forms.TypedChoiceField(
        label="Hold messages back for",
        coerce=int,
        choices=[
            (seconds, f"{seconds // (24 * HOUR_S)} days" if seconds > 24 * HOUR_S else duration_text(seconds))
            for seconds in SILENCES
        ],
    )

    @property
    def wanted(self) -> timedelta:
        """From now on."""
        return timedelta(seconds=self.cleaned_data["silence_s"] - 1)  # the page was sent a moment ago


class ReceiverForm(ConsoleForm):
    """Somebody, or a program."""

    refusals: ClassVar = {"email_off": "address", "receiver_exists": "name"}

    name = forms.CharField(label="Name", max_length=LONGEST_NAME, validators=[ruled(name_problem)], widget=_plain())
    kind = forms.ChoiceField(
        label="Told by", choices=ReceiverKind.choices, initial=ReceiverKind.EMAIL, widget=forms.RadioSelect
    )
    address = forms.CharField(
        label="Address",
        max_length=LONGEST_URL,
        help_text="An e-mail address, which is sent a code first; or an https URL that takes a signed POST.",
        widget=_plain(),
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        self.fields["kind"].choices = [  # type: ignore[attr-defined]
            (ReceiverKind.EMAIL.value, worded("E-mail")),
            (ReceiverKind.WEBHOOK.value, worded("Webhook")),
        ]


class ReceiverChangeForm(GuardedForm):
    """Another name or address of one that there is."""

    refusals: ClassVar = {"email_off": "address", "receiver_exists": "name", "too_many_codes": "address"}

    name = forms.CharField(label="Name", max_length=LONGEST_NAME, validators=[ruled(name_problem)], widget=_plain())
    address = forms.CharField(label="Address", max_length=LONGEST_URL, widget=_plain())

    def __init__(self, data: Any = None, *, receiver: Receiver) -> None:
        now = {"name": receiver.name, "address": receiver.full_address}
        super().__init__(data, now=now, initial=now)

    def changes(self) -> dict[str, str]:
        """What whoever saves has changed, and is not so already; empty: nothing."""
        return self.changed({name: self.cleaned_data[name] for name in ("name", "address")})


class CodeForm(ConsoleForm):
    """What was sent to an e-mail address."""

    code = forms.CharField(label="Code", max_length=64, widget=_plain())
