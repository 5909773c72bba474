"""What to do about an error, in one calm sentence. By the error's stable code; its own detail says what happened."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.utils.translation import gettext

from controlplane.console.wording import filled, joined, worded

if TYPE_CHECKING:
    from controlplane.core.errors import SluiceError
    from controlplane.quotas.figures import Figures

MINUTE_S = 60
NARROW = "\N{NARROW NO-BREAK SPACE}"
_COMMAS = re.compile(r"(?<![A-Za-z0-9_.,\[-])\d{1,3}(?:,\d{3})+(?![A-Za-z0-9_,])")
"""A number with commas between its thousands, and no part of a name, a list or an address."""
ENDS = (".", "?", "!", "\N{IDEOGRAPHIC FULL STOP}", "\N{FULLWIDTH QUESTION MARK}", "\N{FULLWIDTH EXCLAMATION MARK}")
_ADVICE = {
    "cluster_unavailable": "Try again in a minute; your data is safe and running clients are not affected by this page.",
    "master_unavailable": "The figures come back by themselves; the limits you bought stay in force meanwhile.",
    "allocation_unknown": "The first figures appear a few seconds after the instance has started.",
    "nothing_to_spread": "More replicas of a topic in sync, or keys that spread over its partitions, would help.",
    "limit_reached": "Free some by deleting topics, or give the instance more partitions in its settings.",
    "capacity_exhausted": "Ask the operators of this service for more room.",
    "cluster_full": "Ask the operators of this service for more room.",
    "no_place": "Choose other zones, or ask the operators of this service.",
    "concurrent_change": "Load the page again and repeat the change.",
    "deletion_protected": "It stands in the instance's settings.",
    "instance_isolated": "Its page has the button.",
    "organisation_deleting": "Its page says until when an owner can take that back.",
    "instance_deleting": "It can no longer be changed.",
    "instance_not_running": "Wait until it is running; its operation shows how far it is.",
    "bandwidth_used_up": "The instance's own clients share it; its quota page shows each broker's part and why clients waited.",
    "too_many_operations": "The page Operations shows how far each is.",
    "storage_full": "Reading goes on meanwhile.",
    "unsupported": "The rest of the topic can be changed as usual.",
    "too_many_attempts": "Nothing was checked meanwhile; whoever is signed in stays so.",
    "forbidden": "Ask an owner of the organisation.",
}


def sentence(text: str) -> str:
    """In the page's language, with a capital and a full stop: services write fragments, pages show sentences."""
    text = grouped(str(worded(text.strip())))
    text = text[:1].upper() + text[1:]
    return text if text.endswith(ENDS) else text + gettext(".")


def grouped(text: str) -> str:
    """Thousands apart as everywhere on a page: services write ``17,096.60``, for terminals and programs as well."""
    return _COMMAS.sub(lambda number: number[0].replace(",", NARROW), text)


def said(error: SluiceError) -> str:
    """What happened and what to do."""
    return joined(sentence(error.detail), str(worded(_ADVICE.get(error.code, ""))))


def away_text(figures: Figures) -> str:
    """Why figures are not of now, how old those are that are shown, and what brokers do meanwhile."""
    if figures.away is None:
        return ""
    if figures.at is None:
        return said(figures.away)
    age = f"{figures.age_s} s" if figures.age_s < MINUTE_S else f"{figures.age_s // MINUTE_S} min"
    at = f"{figures.at:%Y-%m-%d %H:%M:%S}"
    of = filled("These are the last known figures, {age} old, of {at} UTC.", age=age, at=at)
    return joined(said(figures.away), of, str(worded(figures.meanwhile)))
