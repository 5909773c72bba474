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
