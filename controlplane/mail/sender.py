"""The door to the mail server: plain text, one receiver at a time. Whether there is one is an installation's setting."""

from __future__ import annotations

import smtplib

from django.conf import settings
from django.core.mail import EmailMessage


class MailProblem(Exception):  # noqa: N818  # it reads as what it is: the sentence that is shown
    """Why a mail could not be handed over. The mail server's own words have no place in it."""


def is_installed() -> bool:
    """Whether e-mail can be sent at all."""
    return bool(settings.ENVIRONMENT.smtp)


def mailed(*, subject: str, body: str, message_id: str, address: str) -> None:
    """The mail server has taken it. Raises MailProblem."""
    sender = settings.DEFAULT_FROM_EMAIL
    domain = sender.rpartition("@")[2].strip("<> ") or "localhost"
    headers = {
        "Message-ID": f"<{message_id}@{domain}>",
        "X-Sluice-Message": message_id,
        "Auto-Submitted": "auto-generated",  # RFC 3834: no holiday notice answers it
    }
    try:
        EmailMessage(subject, body, sender, [address], headers=headers).send()
    except smtplib.SMTPRecipientsRefused as error:
        raise MailProblem("the mail server refuses the address") from error
    except smtplib.SMTPResponseException as error:
        raise MailProblem(f"the mail server answers {error.smtp_code}") from error
    except (OSError, smtplib.SMTPException, ValueError) as error:
        raise MailProblem(f"the mail server cannot be reached: {type(error).__name__}") from error
