"""The door to the mail server: plain text, one receiver at a time. Whether there is one is an installation's setting."""

from __future__ import annotations

import smtplib
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.mail import EmailMessage

from controlplane.alarms.delivery.posting import PostProblem

if TYPE_CHECKING:
    from controlplane.alarms.delivery.words import Text


def is_installed() -> bool:
    """Whether e-mail can be sent at all."""
    return bool(settings.ENVIRONMENT.smtp)


def mailed(text: Text, *, message_id: str, address: str) -> None:
    """The mail server has taken it. Raises PostProblem with a sentence, in which the server's own words have no place."""
    sender = settings.DEFAULT_FROM_EMAIL
    domain = sender.rpartition("@")[2].strip("<> ") or "localhost"
    headers = {
        "Message-ID": f"<{message_id}@{domain}>",
        "X-Sluice-Message": message_id,
        "Auto-Submitted": "auto-generated",  # RFC 3834: no holiday notice answers it
    }
    try:
        EmailMessage(text.subject, text.body, sender, [address], headers=headers).send()
    except smtplib.SMTPRecipientsRefused as error:
        raise PostProblem("the mail server refuses the address") from error
    except smtplib.SMTPResponseException as error:
        raise PostProblem(f"the mail server answers {error.smtp_code}") from error
    except (OSError, smtplib.SMTPException, ValueError) as error:
        raise PostProblem(f"the mail server cannot be reached: {type(error).__name__}") from error
