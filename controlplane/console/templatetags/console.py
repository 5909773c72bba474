"""Numbers with their units, moments, icons, bars and fields."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django import template
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst
from django.utils.timesince import timesince
from django.utils.translation import gettext, ngettext

from controlplane.alarms.delivery.words import name_shown, value_text
from controlplane.alarms.rules import FIGURES
from controlplane.alarms.sources import SIZE_WORDS, sizes_changed
from controlplane.billing.exports.document import CHARGED, TITLES, unit_name
from controlplane.billing.pricing.sharing import user_kind
from controlplane.billing.pricing.taxes import tax_name
from controlplane.console import advice
from controlplane.console.flow import rule_name
from controlplane.console.icons import ICONS
from controlplane.console.wording import filled, joined, worded
from controlplane.core.text import visible
from controlplane.health.selectors import health_remembered
from quota.contracts.refused import Refused
from quota.contracts.rows import LOOP_MS, REQUEST, Row, Unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from django.forms import BoundField
    from django.template import Context

    from controlplane.accounts.selectors import Caller
    from controlplane.alarms.events import Event
    from controlplane.console.flow import Bar
    from controlplane.console.listing import Listing
    from controlplane.core.errors import SluiceError
    from controlplane.core.models import Operation
    from controlplane.instances.models import Instance
    from controlplane.kafka.topics import Topic
    from controlplane.quotas.figures import Figures

register = template.Library()
register.filter("worded", worded)
register.filter("user_kind", user_kind)

STEP = 1024
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
SECONDS_PER_HOUR = 3600
DURATIONS = ((86_400_000, "days"), (3_600_000, "hours"), (60_000, "minutes"), (1000, "seconds"), (1, "ms"))
MINUTE_S, DAY_S, TENS = 60, 86_400, 10
SPANS = ((86_400, "days", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))
DASH = "\N{EN DASH}"
UNKNOWN = (None, "")  # the second is what a template makes of a member of nothing
NARROW = advice.NARROW


LIVE_WORDS = (
    *("any rate", "Waiting", "Live", "no limit", "produce", "consume"),
    *("{percent} percent used", "Rule: {branch}", "Broker {broker}", "{leaders} leader", "{leaders} leaders"),
    "Broker {broker}, {direction}: {flow} of {allocation}",
    "The console cannot be reached. The figures come back by themselves.",
)
"""What static/console/live.js says."""


@register.simple_tag
def live_words() -> str:
    """Those, each with its translation, as JSON."""
    return json.dumps({text: gettext(text) for text in LIVE_WORDS})


PLOT_WORDS = ("s", "min", "h", "day", "days", "nothing is known")
"""What static/console/charts.js says beside what comes with each chart."""


@register.simple_tag
def plot_words() -> dict[str, str]:
    """Those, each with its translation."""
    return {text: str(worded(text)) for text in PLOT_WORDS}


@register.simple_tag
def plot_rows(drawn: Mapping[str, Any]) -> str:
    """The rows of the table behind a chart, as parts/plots.html has it.

    Ten charts have thousands of cells: a template takes four times as long for them as all the rest of the page.
    """
    cells = [f'<td class="right num" data-label="{escape(capfirst(line.title))}">' for line in drawn["chart"].lines]
    events = f'<td class="events" data-label="{escape(gettext("Events"))}">' if drawn["legend"] else None
    rows = []
    for at, texts, happened in drawn["rows"]:
        values = "".join(f"{cell}{escape(text)}</td>" for cell, text in zip(cells, texts, strict=True))
        told = [] if events is None else [events, *_listed(happened), "</td>"]
        rows.append(f'<tr><th scope="row" class="num">{escape(at)}</th>{values}{"".join(told)}</tr>\n')
    return mark_safe("".join(rows))  # noqa: S308  # each part is escaped above


def _listed(happened: Sequence[str]) -> list[str]:
    return ['<span class="how">', "<br>".join(map(escape, happened)), "</span>"] if happened else []


@register.inclusion_tag("console/parts/health_state.html", takes_context=True)
def health_state(context: Context, instance: Instance, *, brief: bool = False) -> dict[str, Any]:
    """How an instance is, or that it is being made or taken away. `health` of the page; without, as it was last seen."""
    found = context["health"] if "health" in context else health_remembered(instance)
    return {"instance": instance, "health": found, "brief": brief}


@register.filter
def may(caller: Caller, scope: str) -> bool:
    """Whether they may change all that a scope, or the part of one, is about: of what a page leads to."""
    return caller.may_do(scope)


@register.filter(name="bytes")
def in_bytes(value: float | None) -> str:
    """``1.7 MiB``; a dash for what is not known. static/console/live.js and charts.js write the same."""
    if value in UNKNOWN:
        return DASH
    amount, unit = float(value), 0
    while abs(amount) >= STEP and unit < len(UNITS) - 1:
        amount, unit = amount / STEP, unit + 1
    digits = 0 if unit == 0 or amount >= 100 else 1 if amount >= 10 else 2
    text = f"{amount:.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"{text} {UNITS[unit]}"


@register.filter
def rate(value: float | None) -> str:
    """A rate as people read it, such as 5 MiB/s; an absent one is a dash."""
    return DASH if value in UNKNOWN else f"{in_bytes(value)}/s"


@register.filter
def flow(value: int | None, rule: str | None) -> str:
    """Of a throttled interval: bytes a second, or requests or broker time where those are what was limited."""
    if value in UNKNOWN:
        return DASH
    unit = Row.within("", rule).unit
    if unit is Unit.REQUESTS:
        return filled("{amount} requests/s", amount=amount(value / REQUEST))
    return f"{amount(round(value / LOOP_MS, 1))} ms/s" if unit is Unit.LOOP_TIME else rate(value)


@register.filter
def amount(value: float | Decimal | str | None) -> str:
    """A number as a person writes it: 5 for 5.0, thousands apart."""
    if value in UNKNOWN:
        return DASH
    # A float has not every whole number: above 2**53 the last digits would be others.
    number = float(value) if isinstance(value, float) else Decimal(value)
    text = f"{number:,.6f}".rstrip("0").rstrip(".")
    return text.replace(",", NARROW)


@register.filter
def milliseconds(value: float | None) -> str:
    """``0.42 ms``: three digits that count."""
    return DASH if value is None else f"{amount(float(f'{value:.3g}'))} ms"


@register.filter
def per_s(value: float) -> str:
    """Records a second; one digit more where there are few."""
    return filled("{amount} a second", amount=amount(round(value, 1 if value < TENS else 0)))


@register.filter
def duration(seconds: float) -> str:
    """``4.2 s``, ``3 min 5 s``, ``2 h 10 min``, ``5 days 3 h``: the largest unit and the next."""
    whole = round(seconds)
    if whole < MINUTE_S:
        return f"{amount(round(seconds, 1))} {worded('s')}"
    for size, unit, next_size, next_unit in SPANS:
        if whole >= size:
            rest = whole % size // next_size
            name = unit if whole // size > 1 or unit != "days" else "day"
            return f"{amount(whole // size)} {worded(name)}" + (f" {rest} {worded(next_unit)}" if rest else "")
    raise AssertionError("the last of SPANS is a minute")


@register.filter
def retention(milliseconds: int) -> str:
    """How long records are kept."""
    return duration(milliseconds / 1000)


def _coloured(known: Mapping[str, tuple[str, str]], name: str) -> tuple[str, str]:
    """Its colour and words; of what is not known, no colour and its name."""
    colour, words = known.get(name, ("", name))
    return colour, worded(words)


GROUP_STATES = {
    "Stable": ("running", "Stable"),
    "Empty": ("deleted", "No members"),
    "Dead": ("deleted", "Gone"),
    "PreparingRebalance": ("warning", "Rebalancing"),
    "CompletingRebalance": ("warning", "Rebalancing"),
    "Unknown": ("warning", "Not known"),
}


@register.filter
def group_state(state: str) -> tuple[str, str]:
    """Colour and words."""
    return _coloured(GROUP_STATES, state)


TRANSACTION_STATES = {
    "Empty": ("deleted", "None yet"),
    "Ongoing": ("warning", "Open"),
    "PrepareCommit": ("running", "Committing"),
    "PrepareAbort": ("running", "Aborting"),
    "CompleteCommit": ("deleted", "Committed"),
    "CompleteAbort": ("deleted", "Aborted"),
}


@register.filter
def transaction_state(state: str) -> tuple[str, str]:
    """Colour and words."""
    return _coloured(TRANSACTION_STATES, state)


MIRROR_STATES = {
    "copying": ("running", "Copying"),
    "resting": ("warning", "Waits, and tries again"),
    "stuck": ("failed", "Stuck"),
}


@register.filter
def mirror_state(state: str) -> tuple[str, str]:
    """Colour and words."""
    return _coloured(MIRROR_STATES, state)


DELIVERIES = {"exactly_once": "Exactly once", "at_least_once": "At least once"}


@register.filter
def mirror_delivery(delivery: str) -> str:
    """How often a message arrives."""
    return worded(DELIVERIES.get(delivery, delivery))


REFUSED = {
    Refused.WHITELIST: "The address is on no whitelist",
    Refused.CONNECTIONS: "As many connections as may be were open",
    Refused.RATE: "Too many began at once",
    Refused.BROKER: "The broker had no more room",
    Refused.SASL: "The login failed: wrong user, password or token",
    Refused.NO_LOGIN: "No login, and this route wants one (SASL)",
    Refused.TLS_IN_CLEAR: "TLS, on a route without TLS",
    Refused.NOT_TLS: "No TLS, on a route with TLS",
    Refused.HANDSHAKE: "The TLS handshake failed",
    Refused.CERTIFICATE: "The client's certificate does not let in",
}


@register.filter
def refused_words(reason: str) -> str:
    """Why a connection was refused; a reason that is newer as brokers call it."""
    return str(worded(REFUSED[Refused(reason)])) if reason in tuple(Refused) else reason


@register.filter
def by_topic(places: Sequence[tuple[str, int]]) -> str:
    """``orders 0, 1; payments 2``."""
    found: dict[str, list[str]] = {}
    for topic, partition in places:
        found.setdefault(topic, []).append(str(partition))
    return "; ".join(f"{topic} {', '.join(partitions)}" for topic, partitions in found.items())


@register.filter
def money(value: Decimal | str) -> str:
    """Thousands apart, and every decimal there is: at least two."""
    text = f"{Decimal(value):,f}".replace(",", NARROW)
    whole, _, decimals = text.partition(".")
    return f"{whole}.{decimals.ljust(2, '0')}"


@register.filter
def byte_hours(byte_seconds: int) -> str:
    """``1.7 GiB-hours``: what was stored, times how long."""
    return filled("{amount}-hours", amount=in_bytes(byte_seconds / SECONDS_PER_HOUR))


@register.filter("rule_name")
def in_words_rule(branch: str) -> str:
    """What a rule of the allocation is called."""
    return str(worded(rule_name(branch)))


@register.filter("unit_name")
def in_words_unit(unit: str) -> str:
    """A unit of a bill."""
    return str(worded(unit_name(unit)))


@register.filter
def item_title(item: str) -> str:
    """A bill's item in words."""
    return str(worded(TITLES.get(item, item)))


@register.filter
def tax_of_line(line: Mapping[str, str]) -> str:
    """``VAT, 6 %``: which tax a line of a bill is."""
    return tax_name(line["plan"], Decimal(line["unit_price"]))


@register.filter
def charged_title(kind: str) -> str:
    """Why something was charged in advance."""
    return str(worded(CHARGED.get(kind, kind)))


@register.filter
def moment_of(text: str) -> str:
    """``2026-11-21 09:00`` from RFC 3339."""
    return text[:16].replace("T", " ")


@register.filter
def config_note(value: str, name: str) -> str:
    """A config value in words, where its unit is hidden in its name."""
    if not value.lstrip("-").isdigit():
        return ""
    number = int(value)
    if number < 0:
        return str(worded("no limit"))
    if name.endswith(".bytes"):
        return in_bytes(number)
    if name.endswith(".ms"):
        return next(
            f"{amount(number / size)} {worded(unit.removesuffix('s') if number == size and size > 1 else unit)}"
            for size, unit in DURATIONS
            if number >= size or size == 1
        )
    return ""


CONFIG_SOURCES = {
    "topic": "set for this topic",
    "instance": "the instance's default",
    "broker": "set by the service",
    "default": "Kafka's default",
}


@register.filter
def config_source(source: str) -> str:
    """Where a configuration's value comes from."""
    return str(worded(CONFIG_SOURCES.get(source, source)))


BOUNDS = re.compile(r" (In this service .*|For those who run the brokers\.)$")


@register.filter
def config_doc(text: str) -> str:
    """What a configuration does, as brokers say it: a sentence, and another one where the service has bounds for it."""
    found = BOUNDS.search(text)
    if found is None:
        return str(worded(text))
    return joined(worded(text[: found.start()]), worded(found[1]))


TOPIC_OUTCOMES = {
    "changed": ("succeeded", "Changed"),
    "unchanged": ("deleted", "As it was"),
    "failed": ("failed", "Failed"),
}


@register.filter
def topic_outcome(outcome: str) -> tuple[str, str]:
    """What became of one topic of several: colour and words."""
    return _coloured(TOPIC_OUTCOMES, outcome)


@register.filter
def config_value(value: str | None) -> str:
    """A value, or that there is none."""
    return str(worded("the default")) if value is None else value or DASH


TOPIC_PARTS = {
    "sizes": "sizes",
    "offsets": "offsets",
    "last_write": "the last write",
    "groups": "consumer groups",
    "configs": "configurations",
    "usage": "how much is produced and consumed",
    "written": "what was written to each partition",
}


@register.filter
def topic_parts(parts: Sequence[str]) -> str:
    """What is not known of a topic now."""
    return ", ".join(str(worded(TOPIC_PARTS.get(part, part))) for part in parts)


@register.inclusion_tag("console/parts/bar.html")
def share_bar(part: int, most: int, label: str) -> dict[str, Any]:
    """An amount beside the largest of its column."""
    return {"bar": {"percent": round(100 * part / most, 1) if most else 0, "level": "ok", "limit": 1}, "label": label}


@register.filter
def said(error: SluiceError) -> str:
    """What happened and what to do."""
    return advice.said(error)


@register.filter
def away_text(figures: Figures) -> str:
    """Why figures are not of now, their age, and what brokers do meanwhile."""
    return advice.away_text(figures)


@register.filter
def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return advice.sentence(text)


@register.filter
def count(value: int, words: str) -> str:
    """``3|count:"topic,topics"`` is "3 topics"."""
    one, many = words.split(",")
    return f"{amount(value)} {ngettext(one, many, 1 if value == 1 else 2)}"


@register.simple_tag
def moment(value: datetime | None, missing: str = DASH) -> SafeString | str:
    """How long ago, the exact moment in UTC behind it."""
    if value is None:
        return missing
    exact = f"{value:%Y-%m-%d %H:%M:%S} UTC"
    age_s = (timezone.now() - value).total_seconds()
    near = worded("just now") if age_s < MINUTE_S else filled("{age} ago", age=timesince(value, depth=1))
    if age_s < -DAY_S:  # of a clock that is far ahead
        near = exact
    return format_html('<time datetime="{}" title="{}">{}</time>', value.isoformat(), exact, near)


@register.simple_tag
def stamp(value: datetime | None) -> SafeString | str:
    """The moment itself."""
    if value is None:
        return DASH
    return format_html('<time datetime="{}">{} UTC</time>', value.isoformat(), f"{value:%Y-%m-%d %H:%M}")


@register.simple_tag
def stamp_s(value: datetime) -> SafeString:
    """The moment to the second."""
    return format_html('<time datetime="{}">{} UTC</time>', value.isoformat(), f"{value:%Y-%m-%d %H:%M:%S}")


@register.simple_tag(takes_context=True)
def heading(context: Context, field: str, title: str, kind: str = "") -> SafeString:
    """The head of a column that the table can be sorted by: a link that sorts by it, and once more the other way round.

    `kind`: a class of the cell. The page's `order` says by what it is sorted now.
    """
    request, order = context["request"], context.get("order")
    is_by_it = order is not None and order.field == field
    query = request.GET.copy()
    for name in ("page", "by"):
        query.pop(name, None)
    query["sort"] = f"-{field}" if is_by_it and not order.is_descending else field
    now = ("descending" if order.is_descending else "ascending") if is_by_it else "none"
    return format_html(
        '<th scope="col" class="{}" aria-sort="{}"><a class="sort" href="{}?{}">{}</a></th>',
        kind,
        now,
        request.path,
        query.urlencode(),
        title,
    )


@register.simple_tag(takes_context=True)
def turned(context: Context, shown: Listing, number: int) -> str:
    """The query of this address at another page of one of its lists."""
    query = context["request"].GET.copy()
    query[shown.parameter] = str(number)
    return f"?{query.urlencode()}"


@register.simple_tag
def icon(name: str) -> SafeString:
    """One of icons.py; decoration, the text beside it says what it means."""
    return format_html(
        '<svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false"><path d="{}"/></svg>',
        mark_safe(ICONS[name]),  # noqa: S308  # ours
    )


@register.inclusion_tag("console/parts/bar.html")
def usage_bar(bar: Bar, label: str, live: str = "") -> dict[str, Any]:
    """An amount against its limit. `live` names it for live.js."""
    return {"bar": bar, "label": label, "live": live}


@register.inclusion_tag("console/parts/field.html")
def field(bound: BoundField, unit: str = "") -> dict[str, Any]:
    """A form's field: label, input, help, and what is wrong beside it."""
    return {"field": bound, "unit": unit, "widget_type": bound.widget_type}


OPERATIONS = {
    "instance.create": "Create an instance",
    "instance.update": "Change an instance",
    "instance.isolate": "Isolate an instance",
    "instance.restore": "Restore an instance",
    "instance.delete": "Delete an instance",
    "prepaid.begin": "Pay in advance",
    "prepaid.renew": "Renew in advance",
    "policies.shorten": "Shorten retention",
    "policies.put_back": "Put retention back",
    "policies.expand": "Buy storage",
    "route.create": "Open a route",
    "route.update": "Change a route",
    "route.delete": "Remove a route",
    "topics.configure": "Change several topics",
    "leaders.spread": "Spread leaders",
    "load.run": "Load into the lake",
}


@register.filter
def operation_title(kind: str) -> str:
    """An operation's kind in words."""
    return str(worded(OPERATIONS.get(kind, kind)))


ALARM_EVENTS = {
    "pending": ("warning", "The condition holds"),
    "cleared": ("ok", "The condition ended"),
    "fired": ("firing", "Fired"),
    "resolved": ("ok", "Resolved"),
    "no_data": ("no_data", "No data"),
    "data": ("ok", "Values again"),
    "told": ("", "Told again"),
}


@register.filter
def alarm_event(kind: str) -> str:
    """What happened to an alarm, in words."""
    return str(worded(ALARM_EVENTS[kind][1]))


@register.filter
def alarm_event_colour(kind: str) -> str:
    """Its colour."""
    return ALARM_EVENTS[kind][0]


EVENTS = {
    "health.began": ("degraded", "{subject}"),
    "health.ended": ("healthy", "No longer: {subject}"),
    "operation.began": ("", "{operation}: begun"),
    "operation.succeeded": ("succeeded", "{operation}: done"),
    "operation.failed": ("failed", "{operation}: failed"),
    "alarm.fired": ("firing", "Alarm fired"),
    "alarm.resolved": ("ok", "Alarm resolved"),
    "instance.resized": ("succeeded", "Resized"),
    "throttling.began": ("warning", "{subject} throttled"),
    "throttling.ended": ("healthy", "{subject} no longer throttled"),
    "broker.away": ("degraded", "Broker {broker} of the cluster went away"),
    "broker.back": ("healthy", "Broker {broker} is back"),
    "rebalance.began": ("", "Moving partitions between brokers: begun"),
    "rebalance.ended": ("succeeded", "Moving partitions between brokers: done"),
    "unread.expiring": ("warning", "Unread records of group {group} are about to expire"),
    "unread.safe": ("healthy", "No unread records of group {group} are about to expire any more"),
    "group.rebalanced": ("", "Group {group} rebalanced"),
}


register.filter("visible", visible)


@register.filter
def event_words(event: Event) -> str:
    """What happened to an instance."""
    subject = event.told.subject
    return filled(
        EVENTS[event.kind][1],
        subject=worded(subject),
        operation=operation_title(subject),
        broker=event.told.object,
        group=name_shown(subject),
    )


@register.filter
def event_detail(event: Event) -> str:
    """More about it, as a sentence; empty: there is no more."""
    return detail_of(event) and sentence(detail_of(event))


def detail_of(event: Event) -> str:
    """What the event says; of a resize its sizes, in the words of the page."""
    told = event.told
    if told.after is None:
        return str(worded(told.detail))
    changed = sizes_changed(told.before, told.after)
    return "; ".join(f"{worded(SIZE_WORDS[name][0])} {text}" for name, text in changed)


@register.filter
def watched(value: float | None, watch: str) -> str:
    """A value of what an alarm watches, with its unit; of a health reason whether it is there."""
    if value is None:
        return DASH
    return str(worded(value_text(watch, value) if watch in FIGURES else "there" if value else "not there"))


@register.filter
def event_colour(event: Event) -> str:
    """Its colour: that of its kind, unless something may be lost."""
    return "warning" if event.told.may_be_lost else EVENTS[event.kind][0]


@register.filter
def step_now(operation: Operation) -> str:
    """What a screen reader says when an operation goes on: its step, or how it ended."""
    if operation.finished_at:
        return f"{operation_title(operation.kind)}: {worded(operation.state)}"
    step = operation.steps[operation.step]
    return filled(
        "Step {number} of {all}: {name}",
        number=operation.step + 1,
        all=len(operation.steps),
        name=worded(step["name"]),
    )


@register.filter
def health(topic: Topic) -> tuple[str, str]:
    """Colour and words: whether every partition has its leader and all its replicas."""
    leaderless = sum(partition.leader is None for partition in topic.layout)
    behind = sum(len(partition.isr) < len(partition.replicas) for partition in topic.layout)
    if leaderless:
        return "failed", filled("{leaderless} without a leader", leaderless=leaderless)
    return ("warning", filled("{behind} behind", behind=behind)) if behind else ("running", worded("All"))
