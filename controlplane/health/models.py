"""Since when something is the matter with an instance: what a look at this moment cannot know.

Reached through an instance that was looked up in its organisation's scope, as throttled intervals are.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class HealthReason(models.Model):
    """A reason that was there when the instance was last looked at. It goes when the reason does."""

    instance = models.CharField(max_length=32)
    code = models.CharField(max_length=32)
    state = models.CharField(max_length=16)  # rules.HealthState
    title = models.CharField(max_length=120)
    detail = models.TextField()
    since = models.DateTimeField()

    class Meta:
        """Once for each instance, whoever looks."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "code"], name="one_row_per_reason")
        ]

    def __str__(self) -> str:
        return f"{self.instance} {self.code} since {self.since:%Y-%m-%d %H:%M:%S}"


class HealthSpell(models.Model):
    """A time in which a reason was there: the history of the row above, which goes when the reason does."""

    instance = models.CharField(max_length=32)
    code = models.CharField(max_length=32)
    title = models.CharField(max_length=120)  # as it was at the beginning
    began_at = models.DateTimeField(db_index=True)
    ended_at = models.DateTimeField(null=True)  # null: it is still there

    class Meta:
        """Once, whoever looks; pages read it by instance and time."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "code", "began_at"], name="one_row_per_spell")
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["instance", "began_at"]),
            models.Index(fields=["instance", "ended_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.instance} {self.code} from {self.began_at:%Y-%m-%d %H:%M:%S}"
