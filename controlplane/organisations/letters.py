"""What mails about an organisation say to those who decide about it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.mail.letter import Letter

if TYPE_CHECKING:
    from datetime import datetime

_WHY = "You get this mail because you are an owner of the organisation."
_NOT_YOU = "If you know nothing of this, tell the other owners and the operators of the service at once."
_NOT_YOU_THEN = (
    "If it was not you, choose another password at once, and tell the other owners and the operators of the service."
)
_SHUT = (
    "Single sign-on is required there, and no owner gets in without the provider: while it is away, only operators of the service"
    " can let anybody in. A second factor counts that is set up before single sign-on is required: an owner sets one up, then"
    " switches that off and on again.\n\n"
)


@dataclass(frozen=True, slots=True)
class About:
    """The organisation that a mail is about. Its name is a tenant's text: it stands only where the receiver reads the address."""

    id: str
    name: str  # empty: not to be said
    link: str  # to its page in the console

    @property
    def called(self) -> str:
        """``Harbour (org-k3x9p2qa81zt)``."""
        return f"{self.name} ({self.id})" if self.name else self.id


def made_owner(about: About, *, by: str, is_shut: bool) -> Letter:
    """To whom another owner has made one. `by`: that owner's address; `is_shut`: no owner gets in without single sign-on."""
    return Letter(
        f"You are an owner of the organisation {about.called}",
        f"{by} has made you an owner of the organisation {about.called} on Sluice. Owners decide who belongs to it, what it pays,"
        f" and whether it is deleted.\n\n    {about.link}\n\n{_SHUT if is_shut else ''}{_NOT_YOU}\n",
    )


def stepped_down(about: About, *, by: str, is_shut: bool) -> Letter:
    """To an owner beside whom another one has stepped down. `by`: that one's address; `is_shut`: as above."""
    return Letter(
        f"{by} is no owner of the organisation {about.called} any more",
        f"{by} has stepped down as an owner of the organisation {about.called} on Sluice, and named you as one who goes on."
        f" You are an owner still, as before.\n\n    {about.link}\n\n{_SHUT if is_shut else ''}{_NOT_YOU}\n",
    )


def gave_ownership(about: About, *, to: str, is_owner: bool, is_shut: bool) -> Letter:
    """To whoever has handed over to another member. `is_owner`: they are an owner still; `is_shut`: as above."""
    state = "You are an owner still." if is_owner else "You are no owner any more."
    return Letter(
        f"{to} is an owner of the organisation {about.called}",
        f"You have handed the organisation {about.called} on Sluice over to {to}, who is an owner of it. {state}\n\n"
        f"    {about.link}\n\n{_SHUT if is_shut else ''}{_NOT_YOU_THEN}\n",
    )


def marked(about: About, *, by: str, until: datetime) -> Letter:
    """It is being deleted, and can be taken back. `by`: the address of the owner who has asked for it."""
    return Letter(
        f"The organisation {about.called} will be deleted on {moment(until)}",
        f"{by} has asked for the deletion of the organisation {about.called} on Sluice. From now on nobody uses it: its API keys"
        f" are refused, and its pages say that it is being deleted.\n\n{_taking_back(about, until)}\n\n{_WHY}\n",
    )


def near_its_end(about: About, *, until: datetime) -> Letter:
    """It is deleted within a day."""
    return Letter(
        f"The organisation {about.called} will be deleted on {moment(until)}",
        f"The organisation {about.called} on Sluice is marked for deletion.\n\n{_taking_back(about, until)}\n\n{_WHY}\n",
    )


def held_up(about: About) -> Letter:
    """The time is over, and something is in the way."""
    return Letter(
        f"The organisation {about.called} is not deleted yet",
        f"The organisation {about.called} on Sluice was to be deleted by now. Something is in the way, such as an operation"
        " that is running. Its page in the console says what:\n\n"
        f"    {about.link}\n\n"
        "It is deleted as soon as that is over. Until then nobody uses it, and an owner can take the deletion back on that page."
        f"\n\n{_WHY}\n",
    )


def taken_back(about: About, *, by: str, is_without_keys: bool) -> Letter:
    """It is in use again. `by`: the address of the owner who has decided that; `is_without_keys`: keys of before are revoked."""
    said = (
        "All its API keys and access keys were revoked."
        if is_without_keys
        else "Its API keys are good as before; of those made by single sign-on, one that has fallen asleep meanwhile is good"
        " again once its person has signed in by the provider."
    )
    return Letter(
        f"The organisation {about.called} will not be deleted",
        f"{by} has taken the deletion of the organisation {about.called} on Sluice back. {said} Invitations that were open have"
        " ended, and whoever had signed in by its provider signs in again.\n\n"
        f"    {about.link}\n\n{_WHY}\n",
    )


def deleted(about: About, *, at: datetime) -> Letter:
    """It is gone."""
    return Letter(
        f"The organisation {about.called} was deleted",
        f"The organisation {about.called} on Sluice was deleted at {moment(at)}: nobody belongs to it any more, and its API keys,"
        " roles, service accounts and settings are gone. Invoices, credit notes and the audit log are kept by the service.\n\n"
        "Your own account stays, with the other organisations that you belong to.\n\nYou get this mail because you were an owner"
        " of the organisation.\n",
    )


def moment(at: datetime) -> str:
    """``2026-12-07 09:03 UTC``."""
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _taking_back(about: About, until: datetime) -> str:
    return (
        f"Until {moment(until)} an owner can take that back, on its page in the console:\n\n    {about.link}\n\n"
        "After that its members, API keys, roles, service accounts and settings are deleted, which nobody can undo. Invoices and"
        " the audit log are kept by the service; no page shows them then."
    )
