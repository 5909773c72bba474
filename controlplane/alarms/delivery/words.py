"""What a message says: one document, which is a webhook's body, and from it the text of an e-mail. Pure.

::

    {"type": "alarm.firing", "timestamp": "2026-11-24T03:16:31Z", "data": {
       "organisation": {"id", "name"}, "instance": {"id", "name"},
       "alarm": {"id", "name", "watch", "group", "comparison", "threshold", "unit", "duration_s"},
       "value": 93.1, "since": "2026-11-24T03:11:31Z", "is_repeated": false, "instance_ended": null,
       "detail": null, "is_back": false,
       "text": "Storage used is 93.1 %. …"}}

`type` is ``alarm.firing``, ``alarm.resolved``, ``alarm.no_data``, ``budget.reached`` (`budget_document`) or ``alarm.test``;
receivers pass over a type and members that they do not know. `instance_ended` says of an alarm that is over with its instance
what became of that: one of ENDED; `detail` and `is_back` are those of `alarm_document`. A document is made when its event
happens and never changed: what is tried again tomorrow says what was so today. Documents are in English; an e-mail is written in
its reader's language from what the document says (`email_of`), by a `filled` which knows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from controlplane.alarms.machine import Telling
from controlplane.alarms.rules import FIGURES, REASONS, UNREAD, Comparison, Missing, Rule
from controlplane.core.text import second_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    Filled = Callable[..., str]

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


def english(pattern: str, **values: object) -> str:
    """A pattern with its values, as it stands; what writes for others takes another function in its place."""
    return pattern.format(**values)


def value_text(watch: str, value: float, filled: Filled = english) -> str:
    """Of a figure, as people say it: ``4.5 MiB/s``, ``12.5 %`` of the time, ``90 min``, ``1204 records``."""
    figure = FIGURES[watch]
    if figure.unit.startswith("bytes"):
        return bytes_text(value) + figure.unit.removeprefix("bytes")
    if figure.unit == "s":
        return duration_text(round(value))
    unit = figure.typed.unit
    return amount(value / figure.typed.size, unit and filled(unit))


def bytes_text(value: float) -> str:
    """``1.5 GiB``: in the largest unit of which there is one."""
    power = 0
    while value >= STEP and power < len(UNITS) - 1:
        value, power = value / STEP, power + 1
    return amount(value, UNITS[power])


def name_shown(name: str) -> str:
    """A group may be called anything, and forges no line of a message."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name)


def title_text(rule: Rule, value_of: str = "", filled: Filled = english) -> str:
    """Of a figure, with its group or topic: ``Lag of group billing``; `value_of`: of any group's, or broker's, whose it is."""
    figure, group = FIGURES[rule.watch], rule.group
    if figure.any_broker and value_of:
        return filled(figure.of_one, name=value_of)
    if figure.any_of and value_of:
        figure, group = FIGURES[figure.any_of], value_of
    title = filled(figure.title)
    if group is not None:
        return filled("{title} of group {name}", title=title, name=name_shown(group))
    if rule.topic is not None:
        return filled("{title} of topic {name}", title=title, name=name_shown(rule.topic))
    return title


def doubt_text(missing: Missing, group: str) -> str:
    """Why there is no value, of a rule about any group: what one of them has now is not known."""
    if missing is Missing.NO_SIZE:
        return f"How many bytes the group {name_shown(group)} has not read is not known now"
    if missing is Missing.NO_AGE:
        return f"The oldest record that the group {name_shown(group)} has not read has no known time"
    return f"The group {name_shown(group)} was not seen in the last three minutes"


def rule_text(rule: Rule, filled: Filled = english) -> str:
    """``Storage used at least 75 % for 5 min``."""
    if rule.watch in REASONS:
        said = filled(REASONS[rule.watch])
    else:
        compared = filled(_COMPARED[rule.comparison or ""])
        title, threshold = title_text(rule, "", filled), value_text(rule.watch, rule.threshold or 0, filled)
        said = filled("{title} {compared} {threshold}", title=title, compared=compared, threshold=threshold)
    return filled("{rule} for {time}", rule=said, time=duration_text(rule.duration_s)) if rule.duration_s else said


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
    data: dict[str, Any] = {
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
        "detail": detail or None,
        "is_back": is_back,
    }
    text = _text(TYPES[telling], data, english, detail)
    return {"type": TYPES[telling], "timestamp": second_text(at), "data": {**data, "text": text}}


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
    whom, currency, total = (
        "all instances" if instance is None else instance["name"],
        budget["currency"],
        budget["amount"],
    )
    if kind == "forecast":
        text = (
            f"The cost of {whom} in {month} is {currency} {so_far} so far. At the month's end it will be {currency} {forecast} "
            f"if use goes on as in the last seven days, which is {percent} % of the budget of {currency} {total} or more."
        )
    elif is_over:
        text = (
            f"The cost of {whom} in {month} was {currency} {so_far}, which is {percent} % of the budget of {currency} {total} "
            "or more."
        )
    else:
        text = (
            f"The cost of {whom} in {month} is {currency} {so_far} so far, which is {percent} % of the budget of {currency} "
            f"{total} or more. At the month's end it will be {currency} {forecast} if use goes on as in the last seven days."
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


def email_of(document: Mapping[str, Any], filled: Filled = english, said: Callable[[str], str] = str) -> Text:
    """The same for people to read: `filled` is a pattern with its values, `said` a finished text, in the reader's language."""
    data = document["data"]
    if document["type"] == CONFIRM:
        return Text(filled("Confirm this address for alarms"), said(data["text"]) + "\n")
    if document["type"] == BUDGET:
        return _budget_email(document, filled, said)
    instance = data["instance"]
    where = [
        filled("Instance: {name} ({id})", name=instance["name"], id=instance["id"]),
        filled("Organisation: {name}", name=data["organisation"]["name"]),
    ]
    if document["type"] == TEST:
        subject = filled("[Test] Alarms of {name}", name=instance["name"])
        return Text(subject, "\n".join([said(data["text"]), "", *where]) + "\n")
    alarm, state = data["alarm"], filled(STATES[document["type"]])
    if data["is_repeated"] and document["type"] != TYPES[Telling.RESOLVED]:
        state = filled("{state} (again)", state=state)
    text = data["text"]
    if "detail" in data:  # one of an earlier release has it in English alone
        text = _text(document["type"], data, filled, said(data["detail"] or ""))
    lines = [text, "", filled("Alarm: {name} ({id})", name=alarm["name"], id=alarm["id"]), *where]
    if data["since"] is not None:
        lines.append(filled("Firing since: {time}", time=data["since"]))
    lines.append(filled("Time: {time}", time=document["timestamp"]))
    return Text(f"[{state}] {alarm['name']}: {instance['name']}", "\n".join(lines) + "\n")


def _budget_email(document: Mapping[str, Any], filled: Filled, said: Callable[[str], str]) -> Text:
    data, budget = document["data"], document["data"]["budget"]
    name, currency = budget["name"], budget["currency"]
    lines = [said(data["text"]), ""]
    if data["lower_percents"]:
        lower = ", ".join(f"{percent} %" for percent in data["lower_percents"])
        lines += [filled("Thresholds below that were reached with it: {lower}", lower=lower), ""]
    total = filled("{currency} {amount} a month", currency=currency, amount=budget["amount"])
    lines.append(filled("Budget: {name} ({id}), {total}", name=name, id=budget["id"], total=total))
    if data["instance"] is not None:
        instance = data["instance"]
        lines.append(filled("Instance: {name} ({id})", name=instance["name"], id=instance["id"]))
    lines += [
        filled("Organisation: {name}", name=data["organisation"]["name"]),
        filled("Counted up to: {time}", time=data["counted_until"]),
        filled("Time: {time}", time=document["timestamp"]),
    ]
    if data["kind"] == "actual":
        return Text(filled("[Budget] {name}: {percent} % used", name=name, percent=data["percent"]), _body(lines))
    return Text(filled("[Budget] {name}: forecast at {percent} %", name=name, percent=data["percent"]), _body(lines))


def _body(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


def _text(kind: str, data: Mapping[str, Any], filled: Filled, detail: str) -> str:
    """What has become of an alarm, from what a document says; `detail` in the same language."""
    alarm, value, value_of = data["alarm"], data["value"], data["value_of"] or ""
    comparison = None if alarm["comparison"] is None else Comparison(alarm["comparison"])
    topic = alarm.get("topic")
    rule = Rule(alarm["watch"], comparison, alarm["threshold"], alarm["duration_s"], group=alarm["group"], topic=topic)
    fires = _fires(rule, filled)
    if data["instance_ended"]:
        ended = filled(ENDED[data["instance_ended"]])
        return filled("{ended}. So the alarm is over; it {fires}.", ended=ended, fires=fires)
    if kind == TYPES[Telling.NO_DATA]:
        return _text_of_no_data(rule, data["since"] is not None, filled, detail)
    if rule.watch in REASONS:
        title = filled(REASONS[rule.watch])
        if data["is_back"]:
            return filled("Its state is known again, and the alarm does not fire. It {fires}.", fires=fires)
        if kind == TYPES[Telling.RESOLVED]:
            return filled("No longer: {title}.", title=_lowered(title))
        return _one_behind_the_other(filled, filled("{title}.", title=title), detail)
    figure = _figure_text(rule, value, value_of, filled)
    if data["is_back"]:
        what = _lowered(figure)
        return filled("There are values again: {what}. The alarm does not fire; it {fires}.", what=what, fires=fires)
    if kind == TYPES[Telling.FIRING]:
        return filled("{figure}. The alarm {fires}.", figure=figure, fires=fires)
    return filled("{figure}. The alarm is over; it {fires}.", figure=figure, fires=fires)


def _text_of_no_data(rule: Rule, is_firing: bool, filled: Filled, detail: str) -> str:
    if rule.watch in REASONS:
        # Of a reason that is watched there is no figure to name: what is not known is whether it is there.
        what = filled("Whether it holds is not known.")
    elif FIGURES[rule.watch].verb == "is":
        what = filled("{title} is not known.", title=title_text(rule, "", filled))
    else:
        what = filled("{title} are not known.", title=title_text(rule, "", filled))
    why = detail and filled("{detail}.", detail=detail)
    still = filled("It was firing, and is not over.") if is_firing else ""
    return _one_behind_the_other(filled, what, why, still, filled("The alarm {fires}.", fires=_fires(rule, filled)))


def _one_behind_the_other(filled: Filled, *sentences: str) -> str:
    text = ""
    for sentence in sentences:
        if sentence:
            text = filled("{said} {more}", said=text, more=sentence) if text else sentence
    return text


def _fires(rule: Rule, filled: Filled) -> str:
    """A figure has a place at which it fires; a reason is there or not."""
    said = _lowered(rule_text(rule, filled))
    return filled("fires when: {rule}", rule=said) if rule.watch in REASONS else filled("fires at: {rule}", rule=said)


def _lowered(text: str) -> str:
    return f"{text[0].lower()}{text[1:]}"


def _figure_text(rule: Rule, value: float | None, value_of: str, filled: Filled) -> str:
    """``Lag of group billing is 1204 records``."""
    if rule.watch == UNREAD and value is not None:
        # As a sentence about records: "records … are 1204 records" is none.
        name, number = name_shown(value_of), amount(value)
        if value == 1 and value_of:
            return filled("1 unread record in group {name} is about to expire", name=name)
        if value == 1:
            return filled("1 unread record is about to expire")
        if value_of:
            pattern = "{number} unread records are about to expire, most of them in group {name}"
            return filled(pattern, number=number, name=name)
        return filled("{number} unread records are about to expire", number=number)
    known = filled("not known now") if value is None else value_text(rule.watch, value, filled)
    title = title_text(rule, value_of, filled)
    if FIGURES[rule.watch].verb == "is":
        return filled("{title} is {value}", title=title, value=known)
    return filled("{title} are {value}", title=title, value=known)
