"""What mails of accounts say. Pure.

Nothing that a tenant has written stands in them, names of organisations included: else anybody could have the service write
anything to anybody. Addresses are the exception; they hold no spaces, since those in quotes are refused where they are typed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.mail.letter import Letter

if TYPE_CHECKING:
    from datetime import datetime

_NOT_YOU = "If you did not ask for this, do nothing: without the link nothing happens."
_TELL = "If it was not you, tell the operators of the service at once."


def verification(*, link: str, hours: int) -> Letter:
    """To an address that somebody has signed up with."""
    return Letter(
        "Confirm your e-mail address",
        f"Somebody has signed up to Sluice with this address. If it was you, confirm it here:\n\n    {link}\n\n"
        f"The link works once, for {hours} hours. {_NOT_YOU}\n",
    )


def sign_up(*, link: str, hours: int) -> Letter:
    """To an address that nobody has an account with, and that somebody has signed up with."""
    return Letter(
        "Confirm your e-mail address",
        f"Somebody has signed up to Sluice with this address. If it was you, choose a password here:\n\n    {link}\n\n"
        f"The link works once, for {hours} hours. {_NOT_YOU}\n",
    )


def signed_up_already(*, sign_in: str, forgotten: str) -> Letter:
    """To an account whose address somebody has signed up with once more."""
    return Letter(
        "You have an account already",
        "Somebody has tried to sign up to Sluice with this address. There is an account with it already, and nothing was changed."
        f" If it was you, sign in here:\n\n    {sign_in}\n\n"
        f"If you have forgotten the password, choose another one:\n\n    {forgotten}\n\n"
        "If it was not you, do nothing: whoever it was has learned nothing.\n",
    )


def address_change(*, link: str, hours: int, before: str) -> Letter:
    """To the address that an account is to have."""
    return Letter(
        "Confirm your new e-mail address",
        f"Somebody wants the Sluice account {before} to have this address instead. If it was you, confirm it here:\n\n"
        f"    {link}\n\n"
        f"The link works once, for {hours} hours. {_NOT_YOU}\n",
    )


def address_changed(*, after: str) -> Letter:
    """To the address that an account had."""
    return Letter(
        "The address of your account was changed",
        f"Your Sluice account has another address now: {after}. Mails go there, and you sign in with it.\n\n{_TELL}\n",
    )


def password_reset(*, link: str) -> Letter:
    """To an account whose password somebody has forgotten."""
    return Letter(
        "Choose a new password",
        "Somebody has told Sluice that they forgot the password of the account with this address. If it was you,"
        f" choose another one here:\n\n    {link}\n\nThe link works once, for an hour. {_NOT_YOU}\n",
    )


def browser(*, link: str) -> Letter:
    """To an account that somebody says they want to sign in to from a new browser. Nothing else is known of them."""
    return Letter(
        "Signing in from a new browser",
        "Somebody has asked to sign in from a new browser to the Sluice account with this address. If it was you, open this link"
        " in the browser in which you want to sign in:\n\n"
        f"    {link}\n\nThe link works once, for an hour. It signs nobody in: your password is asked for after it. {_NOT_YOU}\n",
    )


def password_changed() -> Letter:
    """To an account that has another password now."""
    return Letter(
        "Your password was changed",
        "The password of your Sluice account was changed, and its other sessions have ended.\n\n"
        "If it was not you, choose another one at once (“Forgot your password?” on the page to sign in), and tell the"
        " operators of the service.\n",
    )


def proofs_used_up() -> Letter:
    """To an account whose password somebody may be guessing in sessions of an organisation's provider."""
    return Letter(
        "Somebody may be guessing your password",
        "In sessions that the provider of one of your organisations has begun in your name, a wrong password or code of your"
        " Sluice account was typed 20 times today. Until midnight (UTC) none is looked at in such sessions. You sign in by your"
        " password as ever.\n\nIf it was not you, choose another password that you have nowhere else, look which organisations"
        " you belong to, and tell the operators of the service.\n",
    )


def second_factor(*, is_on: bool) -> Letter:
    """To an account that signs in in another way from now on."""
    subject, told = (
        ("Your second factor was switched on", "Your Sluice account asks for a code when you sign in.")
        if is_on
        else ("Your second factor was switched off", "Your Sluice account asks for no code any more when you sign in.")
    )
    return Letter(subject, f"{told}\n\n{_TELL}\n")


def passkey(*, is_added: bool) -> Letter:
    """To an account that is signed in to in another way from now on. Names of passkeys are left out: people write them."""
    told = (
        "A passkey was added to your Sluice account. Whoever has it can sign in without your password."
        if is_added
        else "A passkey was removed from your Sluice account. Nobody can sign in with it any more."
    )
    return Letter(
        "A passkey was added" if is_added else "A passkey was removed",
        f"{told}\n\n{_TELL}\n",
    )


def single_sign_on_connected() -> Letter:
    """To an account that an organisation's provider signs in from now on."""
    return Letter(
        "Single sign-on was connected to your account",
        f"An organisation's provider can sign you in to that organisation on Sluice from now on.\n\n{_TELL}\n",
    )


def single_sign_on_released() -> Letter:
    """To the owners of an organisation whose members operators have let in without its provider."""
    return Letter(
        "Single sign-on is not required any more",
        "Operators of Sluice have let the members of an organisation that you own sign in without its provider again. Why stands"
        " in its audit log.\n\nIf nobody has asked for it, tell the operators of the service at once.\n",
    )


def api_key_expiring(*, prefix: str, expires_at: datetime) -> Letter:
    """To whose key it is. What they have called it is left out, since a tenant has written it."""
    return Letter(
        "An API key of yours expires soon",
        f"Your API key slc_{prefix}_… of Sluice expires on {expires_at:%Y-%m-%d} at {expires_at:%H:%M} UTC. From then on requests"
        " with it are refused.\n\nIf a program uses it, make another key on the page API keys, and give it to the program before"
        " that day.\n",
    )


def access_key_expiring(*, secret_id: str, expires_at: datetime) -> Letter:
    """To whose access key it is. What they have called it is left out, since a tenant has written it."""
    return Letter(
        "An access key of yours expires soon",
        f"Your access key {secret_id} of Sluice expires on {expires_at:%Y-%m-%d} at {expires_at:%H:%M} UTC. From then on what is"
        " signed with it is refused.\n\nIf a program uses it, make another one (sluice access-key create), and give it to the"
        " program before that day.\n",
    )


def service_account_key_expiring(*, prefix: str, service_account_id: str, expires_at: datetime) -> Letter:
    """To the owners of the organisation. What they have called either is left out, since a tenant has written it."""
    return Letter(
        "An API key of a service account expires soon",
        f"The API key slc_{prefix}_… of the service account {service_account_id} of your organisation on Sluice expires on"
        f" {expires_at:%Y-%m-%d} at {expires_at:%H:%M} UTC. From then on requests with it are refused.\n\nIf a program uses it,"
        " make another key on the page Service accounts, and give it to the program before that day.\n",
    )


def invitation(*, link: str, days: int, inviter: str) -> Letter:
    """To whoever is invited into an organisation. The page behind the link names it."""
    return Letter(
        "You are invited to Sluice",
        f"{inviter} invites you to join an organisation on Sluice. Look at the invitation here:\n\n    {link}\n\n"
        f"The link works once, for {days} days. If you do not expect it, ignore this mail: without the link nothing happens.\n",
    )
