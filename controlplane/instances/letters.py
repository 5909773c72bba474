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


def near_its_end(about: About, *, until: datetime) -> Letter:
    """It is destroyed within a day."""
    return Letter(
        f"Instance {about.called} will be destroyed at {moment(until)}",
        f"The instance {about.called} was deleted and is isolated. It will be destroyed at {moment(until)}.\n\n"
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


def change_made(about: About, *, wanted: str, at: datetime) -> Letter:
    """A change of sizes that was scheduled has been made. `wanted`: ``20 MiB/s, 90 partitions``."""
    return Letter(
        f"The scheduled change of instance {about.called} was made",
        f"The instance {about.called} has the sizes that were scheduled for {moment(at)}: {wanted}.\n\n"
        f"    {about.link}\n\n{_WHY}\n",
    )


def change_refused(about: About, *, wanted: str, at: datetime, problem: str) -> Letter:
    """A change of sizes that was scheduled could not be made. `problem`: why; empty: not to be said."""
    why = f"\n\nWhy: {problem}." if problem else ""
    return Letter(
        f"The scheduled change of instance {about.called} failed",
        f"The instance {about.called} was to have other sizes at {moment(at)}: {wanted}. The change was refused, and nothing"
        f" was changed.{why}\n\nIts page says more; change the sizes there, or schedule it again:\n\n    {about.link}\n\n"
        f"{_WHY}\n",
    )


def change_stuck(about: About, *, wanted: str, at: datetime) -> Letter:
    """A change of sizes that was scheduled was made, and brokers do not have it."""
    return Letter(
        f"The scheduled change of instance {about.called} is not in force yet",
        f"The instance {about.called} was given the sizes that were scheduled for {moment(at)}: {wanted}. Its operation gave"
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
