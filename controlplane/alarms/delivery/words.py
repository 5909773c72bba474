"""What a message says: one document, which is a webhook's body, and from it the text of an e-mail. Pure.

::

    {"type": "alarm.firing", "timestamp": "2026-11-24T03:16:31Z", "data": {
       "organisation": {"id", "name"}, "instance": {"id", "name"},
       "alarm": {"id", "name", "watch", "group", "comparison", "threshold", "unit", "duration_s"},
       "value": 93.1, "since": "2026-11-24T03:11:31Z", "is_repeated": false, "instance_ended": null,
       "text": "Storage used is 93.1 %. …"}}

`type` is ``alarm.firing``, ``alarm.resolved``, ``alarm.no_data``, ``budget.reached`` (`budget_document`) or ``alarm.test``;
receivers pass over a type and members that they do not know. `instance_ended` says of an alarm that is over with its instance
what became of that: one of ENDED. A document is made when its event happens and never changed: what is tried
again tomorrow says what was so today.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from controlplane.alarms.machine import Telling
from controlplane.alarms.rules import FIGURES, REASONS, UNREAD, Missing
from controlplane.core.text import second_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from controlplane.alarms.rules import Rule

TYPES = {Telling.FIRING: "alarm.firing", Telling.RESOLVED: "alarm.resolved", Telling.NO_DATA: "alarm.no_data"}
STATES = {"alarm.firing": "Firing", "alarm.resolved": "Resolved", "alarm.no_data": "No data"}
"""What the subject of an e-mail begins with."""
ENDED = {
    "isolated": "The instance was deleted, or is not paid for any more: it is kept for a while, and nobody can connect to it",
    "deleted": "The instance was deleted",
}
"""What has become of an instance that is gone, in words."""
TEST, CONFIRM, BUDGET = "alarm.test", "receiver.confirm", "budget.reached"
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
STEP = 1024
CODE_PLACE = "(the code)"
_COMPARED = {"above": "above", "at_least": "at least", "below": "below", "at_most": "at most"}


@dataclass(frozen=True, slots=True)
class Text:
    """An e-mail."""

    subject: str
    body: str


def amount(value: float, unit: str = "") -> str:
    """``93.1 %``: at most two decimals."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return f"{text} {unit}".strip()


def value_text(watch: str, value: float) -> str:
    """Of a figure, as people say it: ``4.5 MiB/s``, ``12.5 %`` of the time, ``90 min``, ``1204 records``."""
    figure = FIGURES[watch]
    if figure.unit.startswith("bytes"):
        return bytes_text(value) + figure.unit.removeprefix("bytes")
    if figure.unit == "s":
        return duration_text(round(value))
    return amount(value / figure.typed.size, figure.typed.unit)


def bytes_text(value: float) -> str:
    """``1.5 GiB``: in the largest unit of which there is one."""
    power = 0
    while value >= STEP and power < len(UNITS) - 1:
        value, power = value / STEP, power + 1
    return amount(value, UNITS[power])


def name_shown(name: str) -> str:
    """A group may be called anything, and forges no line of a message."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name)


def title_text(rule: Rule, value_of: str = "") -> str:
    """Of a figure, with its group or topic: ``Lag of group billing``; `value_of`: of any group's, or broker's, whose it is."""
    figure, group = FIGURES[rule.watch], rule.group
    if figure.any_broker and value_of:
        return figure.of_one.format(name=value_of)
    if figure.any_of and value_of:
        figure, group = FIGURES[figure.any_of], value_of
    if group is not None:
        return f"{figure.title} of group {name_shown(group)}"
    return figure.title if rule.topic is None else f"{figure.title} of topic {name_shown(rule.topic)}"


def doubt_text(missing: Missing, group: str) -> str:
    """Why there is no value, of a rule about any group: what one of them has now is not known."""
    if missing is Missing.NO_SIZE:
        return f"How many bytes the group {name_shown(group)} has not read is not known now"
    if missing is Missing.NO_AGE:
        return f"The oldest record that the group {name_shown(group)} has not read has no known time"
    return f"The group {name_shown(group)} was not seen in the last three minutes"


def rule_text(rule: Rule) -> str:
    """``Storage used at least 75 % for 5 min``."""
    lasting = f" for {duration_text(rule.duration_s)}" if rule.duration_s else ""
    if rule.watch in REASONS:
        return REASONS[rule.watch] + lasting
    compared = _COMPARED[rule.comparison or ""]
    return f"{title_text(rule)} {compared} {value_text(rule.watch, rule.threshold or 0)}{lasting}"


def duration_text(seconds: int) -> str:
    """In the largest unit that it is whole in."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds and seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def alarm_document(
    *,
    telling: Telling,
    at: datetime,
    place: Mapping[str, Mapping[str, str]],
    alarm_id: str,
    name: str,
    rule: Rule,
    value: float | None,
    since: datetime | None,
    is_repeated: bool,
    value_of: str = "",
    detail: str = "",
    ended: str = "",
    is_back: bool = False,
) -> dict[str, Any]:
    """Of an alarm that fires, does not any more, or has no values. `place` names organisation and instance.

    `is_repeated`: who gets it was told the same the last time. `value_of` is the group, or broker, whose value it is, of a
    rule about any. `detail` is what health says, or why there is no value; `ended` is one of ENDED where the instance is gone,
    else empty.
    `is_back`: it does not fire, and was not told as firing before it had no values.
    """
    if ended:
        text = _text_of_end(rule, ended)
    elif is_back:
        text = _text_of_values(rule, value, value_of)
    else:
        text = _text(telling, rule, value, detail, since, value_of)
    return {
        "type": TYPES[telling],
        "timestamp": second_text(at),
        "data": {
            **place,
            "alarm": {
                "id": alarm_id,
                "name": name,
                "watch": rule.watch,
                "group": rule.group,
                **({} if rule.topic is None else {"topic": rule.topic}),
                "comparison": rule.comparison,
                "threshold": rule.threshold,
                "unit": rule.unit,
                "duration_s": rule.duration_s,
            },
            "value": value,
            "value_of": value_of or None,
            "since": None if since is None else second_text(since),
            "is_repeated": is_repeated,
            "instance_ended": ended or None,
            "text": text,
        },
    }


def budget_document(
    *,
    at: datetime,
    place: Mapping[str, Mapping[str, str] | None],
    budget: Mapping[str, str],
    month: str,
    kind: str,
    percent: int,
    lower: Sequence[int],
    so_far: str,
    forecast: str,
    counted_until: datetime,
    is_over: bool,
) -> dict[str, Any]:
    """Of a budget that has reached a threshold. `place`: the instance is null where the budget is of all instances.

    `kind`: ``actual`` (the cost so far is so many percent of the amount) or ``forecast`` (the month will have cost so much);
    `lower`: thresholds of the same kind below, which were reached with it.
    """
    instance = place["instance"]
    whose, currency = "all instances" if instance is None else instance["name"], budget["currency"]
    reached = f"which is {percent} % of the budget of {currency} {budget['amount']} or more."
    so_far_text = f"The cost of {whose} in {month} {'was' if is_over else 'is'} {currency} {so_far}"
    later = f"it will be {currency} {forecast} if use goes on as in the last seven days"
    if kind == "forecast":
        text = f"{so_far_text} so far. At the month's end {later}, {reached}"
    else:
        text = (
            f"{so_far_text}, {reached}" if is_over else f"{so_far_text} so far, {reached} At the month's end {later}."
        )
    return {
        "type": BUDGET,
        "timestamp": second_text(at),
        "data": {
            **place,
            "budget": dict(budget),
            "month": month,
            "kind": kind,
            "percent": percent,
            "lower_percents": list(lower),
            "so_far": so_far,
            "forecast": forecast,
            "counted_until": second_text(counted_until),
            "text": text,
        },
    }


def test_document(*, at: datetime, place: Mapping[str, Mapping[str, str]], name: str) -> dict[str, Any]:
    """Somebody wants to see whether messages arrive."""
    text = f"This is a test of the receiver {name}. Nothing is the matter."
    return {"type": TEST, "timestamp": second_text(at), "data": {**place, "text": text}}


def confirm_document(*, at: datetime, instance_id: str) -> dict[str, Any]:
    """Whether messages may come here. Nothing in it is a tenant's to write: it goes to whoever they name.

    The code is put in its place when the mail is sent (`with_code`), since the document stands in the database.
    """
    text = (
        f"Somebody wants alarms of the Kafka instance {instance_id} to be sent to this address. The code that confirms it:\n\n"
        f"    {CODE_PLACE}\n\nIf nobody here knows of it, do nothing: no message comes without the code."
    )
    return {"type": CONFIRM, "timestamp": second_text(at), "data": {"text": text}}


def with_code(text: Text, code: str) -> Text:
    """The mail that a confirmation is."""
    return Text(text.subject, text.body.replace(CODE_PLACE, code))


def email_of(document: Mapping[str, Any]) -> Text:
    """The same for people to read."""
    data = document["data"]
    if document["type"] == CONFIRM:
        return Text("Confirm this address for alarms", data["text"] + "\n")
    if document["type"] == BUDGET:
        return _budget_email(document)
    instance = data["instance"]
    where = f"Instance: {instance['name']} ({instance['id']})\nOrganisation: {data['organisation']['name']}"
    if document["type"] == TEST:
        return Text(f"[Test] Alarms of {instance['name']}", f"{data['text']}\n\n{where}\n")
    word = STATES[document["type"]]
    again = " (again)" if data["is_repeated"] and document["type"] != TYPES[Telling.RESOLVED] else ""
    lines = [data["text"], "", f"Alarm: {data['alarm']['name']} ({data['alarm']['id']})", where]
    if data["since"] is not None:
        lines.append(f"Firing since: {data['since']}")
    lines.append(f"Time: {document['timestamp']}")
    return Text(f"[{word}{again}] {data['alarm']['name']}: {instance['name']}", "\n".join(lines) + "\n")


def _budget_email(document: Mapping[str, Any]) -> Text:
    data, budget = document["data"], document["data"]["budget"]
    lines = [data["text"], ""]
    if data["lower_percents"]:
        lower = ", ".join(f"{percent} %" for percent in data["lower_percents"])
        lines += [f"Thresholds below that were reached with it: {lower}", ""]
    lines.append(f"Budget: {budget['name']} ({budget['id']}), {budget['currency']} {budget['amount']} a month")
    if data["instance"] is not None:
        lines.append(f"Instance: {data['instance']['name']} ({data['instance']['id']})")
    lines += [
        f"Organisation: {data['organisation']['name']}",
        f"Counted up to: {data['counted_until']}",
        f"Time: {document['timestamp']}",
    ]
    what = f"{data['percent']} % used" if data["kind"] == "actual" else f"forecast at {data['percent']} %"
    return Text(f"[Budget] {budget['name']}: {what}", "\n".join(lines) + "\n")


def _text_of_end(rule: Rule, ended: str) -> str:
    return f"{ENDED[ended]}. So the alarm is over; it {_fires(rule)}."


def _text_of_values(rule: Rule, value: float | None, value_of: str) -> str:
    """There were none, and it does not fire now."""
    if rule.watch in REASONS:
        return f"Its state is known again, and the alarm does not fire. It {_fires(rule)}."
    what = _figure_text(rule, value, value_of)
    return f"There are values again: {_lowered(what)}. The alarm does not fire; it {_fires(rule)}."


def _fires(rule: Rule) -> str:
    """A figure has a place at which it fires; a reason is there or not."""
    return f"{'fires when' if rule.watch in REASONS else 'fires at'}: {_lowered(rule_text(rule))}"


def _lowered(text: str) -> str:
    return f"{text[0].lower()}{text[1:]}"


def _figure_text(rule: Rule, value: float | None, value_of: str) -> str:
    """``Lag of group billing is 1204 records``."""
    if rule.watch == UNREAD and value is not None:
        # As a sentence about records: "records … are 1204 records" is none.
        whose = f" in group {name_shown(value_of)}" if value_of else ""
        if value == 1:
            return f"1 unread record{whose} is about to expire"
        return f"{amount(value)} unread records are about to expire{whose and f', most of them{whose}'}"
    known = "not known now" if value is None else value_text(rule.watch, value)
    return f"{title_text(rule, value_of)} {FIGURES[rule.watch].verb} {known}"


def _text(telling: Telling, rule: Rule, value: float | None, detail: str, since: datetime | None, value_of: str) -> str:
    if telling is Telling.NO_DATA:
        # Of a reason that is watched there is no figure to name: what is not known is whether it is there.
        what = "Whether it holds is" if rule.watch in REASONS else f"{title_text(rule)} {FIGURES[rule.watch].verb}"
        why = f" {detail}." if detail else ""
        fires = " It was firing, and is not over." if since is not None else ""
        return f"{what} not known.{why}{fires} The alarm {_fires(rule)}."
    if rule.watch in REASONS:
        title = REASONS[rule.watch]
        over = f"No longer: {_lowered(title)}."
        return over if telling is Telling.RESOLVED else f"{title}. {detail}".strip()
    state = "The alarm" if telling is Telling.FIRING else "The alarm is over; it"
    return f"{_figure_text(rule, value, value_of)}. {state} {_fires(rule)}."
