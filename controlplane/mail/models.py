"""Mails of the service itself, until they are sent and for a month after."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from controlplane.sealing.fields import SealedField


class MailState(models.TextChoices):
    """What has become of a mail."""

    WAITING = "waiting"  # not sent yet, or to be tried again
    SENDING = "sending"  # a worker is at it
    SENT = "sent"  # the mail server has taken it
    FAILED = "failed"  # given up; `error` says why


class Mail(models.Model):
    """One mail to one address. What it says is sealed, since links stand in it, and is forgotten when it has ended."""

    id = models.CharField(primary_key=True, max_length=20)
    address = models.EmailField()
    # JSON with `subject` and `body`; empty: it has ended.
    sealed = SealedField(default=bytes, owner=("id",), before="sluice mail {id}")
    state = models.CharField(max_length=8, choices=MailState, default=MailState.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    error = models.CharField(max_length=300, blank=True, default="")  # of the last attempt; empty: it went well
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        """The outbox is asked for what is due; what is old goes."""

        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["state", "next_attempt_at"]),
            models.Index(fields=["created_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.id} to {self.address} ({self.state})"
