"""What mails about a policy say to the owners of an organisation. Pure.

Names of topics and groups are a tenant's text: they stand where the instance's name does, and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.core.text import visible
from controlplane.instances.letters import moment
from controlplane.mail.letter import Letter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from controlplane.instances.letters import About
    from controlplane.policies.rules import Loss

MOST_LOSSES = 20
MOST_NAMED = 20
_WHY = "You get this mail because you are an owner of the organisation."


def shortened(
    about: About,
    *,
    level_percent: int,
    topics: int,
    names: Sequence[str],
    records: int,
    lost: int,
    losses: Sequence[Loss],
    at: datetime,
) -> Letter:
    """Retention of `topics`, of which some have these names, was shortened, and who loses what by it."""
    subject, what = f"Retention of instance {about.called} was shortened", _topics_text(about, topics, names)
    return Letter(
        subject if not lost else f"{subject}: groups lose unread records",
        f"The storage of the instance {about.called} was used to {level_percent} % or more at {moment(at)}. As its policy says,"
        f" retention was shortened ({what}): up to {records:,} records are deleted within some minutes."
        f"\n\n{_losses_text(about, lost, losses)}\n\nRetention is put back as it was when there is room again, or when the policy"
        f" is switched off. What is deleted does not come back.\n\n    {about.link}\n\n{_WHY}\n",
    )


def _topics_text(about: About, topics: int, names: Sequence[str]) -> str:
    if not about.name or not names:
        return f"topics: {topics}"
    named = ", ".join(names[:MOST_NAMED])
    is_all = topics <= len(names[:MOST_NAMED])
    return f"topics: {topics}: {named}" if is_all else f"topics: {topics}: {named} and others"


def _losses_text(about: About, lost: int, losses: Sequence[Loss]) -> str:
    if not lost:
        return "All groups that have committed offsets have read what is deleted."
    said = f"Up to {lost:,} of them have not been read by groups that read these topics."
    if not about.name:
        return f"{said} The page of the instance says which."
    rows = [f"    {_loss_text(loss)}" for loss in losses[:MOST_LOSSES]]
    return "\n".join([said, "", *rows, *(["    and others"] if len(losses) > MOST_LOSSES else [])])


def _loss_text(loss: Loss) -> str:
    """On one line, whatever a client has called its group: what follows a line end in it would read as our own words."""
    group = visible(loss.group)
    if loss.size_bytes is None:
        return f"{group}: {loss.records:,} records of {loss.topic}"
    mebibytes = loss.size_bytes / 2**20
    return f"{group}: {loss.records:,} records of {loss.topic}, about {mebibytes:,.1f} MiB"


def expanded(about: About, *, before_gib: float, after_gib: float, most_gib: float, price: str, at: datetime) -> Letter:
    """More storage was bought. `price`: ``CNY 120.00``, what the instance costs a month now."""
    return Letter(
        f"Instance {about.called} was given more storage: {after_gib:g} GiB",
        f"The storage of the instance {about.called} had reached the level of its policy at {moment(at)}: it was raised from"
        f" {before_gib:g} GiB to {after_gib:g} GiB, and will not be raised beyond {most_gib:g} GiB. The instance costs {price} a"
        f" month now, use not counted.\n\n    {about.link}\n\n{_WHY}\n",
    )


def stuck(about: About, *, problem: str, at: datetime) -> Letter:
    """The policy should have acted, and could not. `problem`: why; empty: not to be said."""
    why = f"\n\nThe reason: {problem}." if problem else ""
    return Letter(
        f"The storage of instance {about.called} fills up",
        f"The storage of the instance {about.called} has reached the level of its policy, which could do nothing about it at"
        f" {moment(at)}.{why}\n\nWhen storage is full, producing is refused. Its page says more:\n\n    {about.link}\n\n{_WHY}\n",
    )
