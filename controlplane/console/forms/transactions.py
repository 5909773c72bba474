"""Ending a transaction."""

from __future__ import annotations

from django import forms

from controlplane.console.forms.instances import DeletionForm


class EndingForm(DeletionForm):
    """Typing the id shows that it is meant."""

    def clean_confirmation(self) -> str:
        """See DeletionForm; nothing is deleted here."""
        try:
            return super().clean_confirmation()
        except forms.ValidationError as error:
            raise forms.ValidationError("This is not the id. Nothing was ended.") from error


class HangingEndingForm(DeletionForm):
    """Typing the topic's name shows it; a transaction that hangs has no id."""

    def clean_confirmation(self) -> str:
        """See DeletionForm; no topic is deleted here."""
        try:
            return super().clean_confirmation()
        except forms.ValidationError as error:
            raise forms.ValidationError("This is not the topic's name. Nothing was ended.") from error
