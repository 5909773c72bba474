"""What mails about an instance say to the owners of its organisation. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.mail.letter import Letter

if TYPE_CHECKING:
    from datetime import datetime

_WHY = "You get this mail because you are an owner of the organisation."


@dataclass(frozen=True, slots=True)
class About:
    """The instance that a mail is about. Its name is a tenant's text: it stands only where the receiver reads the address."""

    id: str
    name: str  # empty: not to be said
    link: str  # to its page in the console

    @property
    def called(self) -> str:
        """``events (ins-k3x9p2qa)``."""
        return f"{self.name} ({self.id})" if self.name else self.id


def isolated(about: About, *, until: datetime) -> Letter:
    """It was deleted, and can be restored."""
    return Letter(
        f"Instance {about.called} is isolated until {moment(until)}",
        f"The instance {about.called} was deleted. It is isolated: nobody produces or consumes, and topics, messages, groups,"
        f" users and ACLs are kept.\n\n{_restoring(about, until)}\n\n{_WHY}\n",
    )


def expired(about: About, *, until: datetime) -> Letter:
    """It is paid no more, and can be renewed."""
    return Letter(
        f"Instance {about.called} is isolated until {moment(until)}: it is paid no more",
        f"What was paid in advance for the instance {about.called} has ended. It is isolated: nobody produces or consumes, and"
        f" topics, messages, groups, users and ACLs are kept.\n\nUntil {moment(until)} it can be opened again, as it was and at"
        f" its old addresses: paid in advance by `sluice prepaid begin {about.id}`, or paid by the hour by `sluice instance"
        f" restore {about.id}`, and by buttons on its page.\n\n    {about.link}\n\n"
        f"After that it is destroyed with all its data, which nobody can undo.\n\n{_WHY}\n",
    )


def ends_soon(about: About, *, at: datetime, at_end: str) -> Letter:
    """What is paid in advance ends within days. `at_end`: what becomes of it then, as billing has it."""
    becomes = {
        "expire": "Then it is isolated: nobody produces or consumes, its data are kept for some days and deleted after that."
        f" Renew it before: by `sluice prepaid renew {about.id}`, or on its page.",
        "renew": "Then it is renewed by itself, at the prices of that day. If that is not meant, switch it off before: by `sluice"
        f" prepaid set {about.id} --at-end expire`, or on its page.",
        "postpaid": "Then it goes on, paid by the hour. It can be renewed before: by `sluice prepaid renew"
        f" {about.id}`, or on its page.",
    }
    return Letter(
        f"Instance {about.called} is paid until {moment(at)}",
        f"The instance {about.called} is paid in advance until {moment(at)}. {becomes[at_end]}\n\n    {about.link}\n\n{_WHY}\n",
    )


def renewed(about: About, *, until: datetime, months: int, price: str) -> Letter:
    """It was renewed by itself. `price`: ``CNY 2,610.00``."""
    becomes = (
        f"The instance {about.called} was renewed by itself for a month, until {moment(until)}."
        if months == 1
        else f"The instance {about.called} was renewed by itself for {months} months, until {moment(until)}."
    )
    return Letter(
        f"Instance {about.called} was renewed until {moment(until)}",
        f"{becomes}\n\n{price} are on the bill of this month.\n\nHow it goes on after that is decided on its page:\n\n"
        f"    {about.link}\n\n{_WHY}\n",
    )


def goes_on_postpaid(about: About, *, at: datetime, why: str) -> Letter:
    """What was paid in advance has ended, and it goes on by the hour. `why`: a sentence; empty: as it was decided."""
    because = f"\n\n{why}" if why else ""
    return Letter(
        f"Instance {about.called} is paid by the hour since {moment(at)}",
        f"What was paid in advance for the instance {about.called} ended at {moment(at)}. It goes on, and is paid by the hour"
        f" since then.{because}\n\n    {about.link}\n\n{_WHY}\n",
    )


def elastic_spent(about: About, *, budget: str, until: datetime) -> Letter:
    """Its elastic bandwidth is off, since the budget of the month is used up. `budget`: ``CNY 100.00``."""
    return Letter(
        f"Elastic bandwidth of instance {about.called} is off until {moment(until)}",
        f"The budget of this month for what the instance {about.called} carries above its bought bandwidth, {budget}, is used up."
        f" Until {moment(until)} it carries no more than was bought; its clients wait where they want more.\n\n"
        f"Another budget, or more bandwidth, can be had on its page, or by `sluice elastic set {about.id} --cap …`:\n\n"
        f"    {about.link}\n\n{_WHY}\n",
    )


def near_its_end(about: About, *, until: datetime) -> Letter:
    """It is destroyed within a day."""
    return Letter(
        f"Instance {about.called} will be destroyed at {moment(until)}",
        f"The instance {about.called} was deleted, or is paid no more, and is isolated. It will be destroyed at"
        f" {moment(until)}.\n\n"
        f"{_restoring(about, until)}\n\n{_WHY}\n",
    )


def destroyed(about: About, *, at: datetime) -> Letter:
    """It is gone."""
    return Letter(
        f"Instance {about.called} was destroyed",
        f"The instance {about.called} was destroyed at {moment(at)}, with its topics, messages, groups, users and ACLs."
        " Nobody can restore it. What it has cost stays on its bills, and who deleted it stands in the audit trail of the"
        f" organisation.\n\n{_WHY}\n",
    )


def change_made(about: About, *, sizes: str, at: datetime) -> Letter:
    """A change of sizes that was scheduled has been made. `sizes`: ``20 MiB/s, 90 partitions``."""
    return Letter(
        f"The scheduled change of instance {about.called} was made",
        f"The instance {about.called} has the sizes that were scheduled for {moment(at)}: {sizes}.\n\n"
        f"    {about.link}\n\n{_WHY}\n",
    )


def change_refused(about: About, *, sizes: str, at: datetime, problem: str) -> Letter:
    """A change of sizes that was scheduled could not be made. `problem`: why; empty: not to be said."""
    why = f"\n\nThe reason: {problem}." if problem else ""
    return Letter(
        f"The scheduled change of instance {about.called} failed",
        f"The instance {about.called} was to have other sizes at {moment(at)}: {sizes}. The change was refused, and nothing"
        f" was changed.{why}\n\nIts page says more; change the sizes there, or schedule it again:\n\n    {about.link}\n\n"
        f"{_WHY}\n",
    )


def change_stuck(about: About, *, sizes: str, at: datetime) -> Letter:
    """A change of sizes that was scheduled was made, and brokers do not have it."""
    return Letter(
        f"The scheduled change of instance {about.called} is not in force yet",
        f"The instance {about.called} was given the sizes that were scheduled for {moment(at)}: {sizes}. Its operation gave"
        " up before every broker had them. The service goes on bringing them to the brokers; the page of the instance says how"
        f" it stands:\n\n    {about.link}\n\n{_WHY}\n",
    )


def moment(at: datetime) -> str:
    """``2026-12-03 10:00 UTC``."""
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _restoring(about: About, until: datetime) -> str:
    return (
        f"Until {moment(until)} it can be restored as it was, at its old addresses: by the button on its page, or by `sluice"
        f" instance restore {about.id}`.\n\n    {about.link}\n\n"
        "After that it is destroyed with all its data, which nobody can undo."
    )
