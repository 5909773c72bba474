"""Signing up and in, organisations, members, API keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from controlplane.console.forms.base import AddressField, ConsoleForm
from controlplane.tenants.models import Role

if TYPE_CHECKING:
    from controlplane.accounts.models import User

_EMAIL = {"autocomplete": "email", "inputmode": "email", "spellcheck": "false", "autocapitalize": "off"}

_HOW_LONG = "At least 10 characters. A few words are easier to remember than symbols."


class SignUpForm(ConsoleForm):
    """A person and an organisation of their own."""

    refusals: ClassVar = {"already_exists": "organisation_name"}

    email = AddressField(widget=forms.EmailInput(_EMAIL))
    name = forms.CharField(
        label="Your name", max_length=128, required=False, widget=forms.TextInput({"autocomplete": "name"})
    )
    organisation_name = forms.CharField(
        label="Organisation",
        max_length=128,
        help_text="Instances, keys and bills belong to it. You can add colleagues later.",
        widget=forms.TextInput({"autocomplete": "organization"}),
    )
    password = forms.CharField(
        label="Password",
        strip=False,
        max_length=1024,
        help_text=_HOW_LONG,
        widget=forms.PasswordInput({"autocomplete": "new-password"}),
    )


class SignInForm(ConsoleForm):
    """An email and a password; which of the two is wrong is not said."""

    email = forms.CharField(label="Email", max_length=254, widget=forms.EmailInput(_EMAIL | {"autofocus": True}))
    password = forms.CharField(
        label="Password",
        strip=False,
        max_length=1024,
        widget=forms.PasswordInput({"autocomplete": "current-password"}),
    )


class NameForm(ConsoleForm):
    """What a person is called."""

    name = forms.CharField(
        label="Your name", max_length=128, required=False, widget=forms.TextInput({"autocomplete": "name"})
    )


class PasswordForm(ConsoleForm):
    """Another password, for whoever knows the one of today."""

    current = forms.CharField(
        label="Current password",
        strip=False,
        max_length=1024,
        widget=forms.PasswordInput({"autocomplete": "current-password"}),
    )
    password = forms.CharField(
        label="New password",
        strip=False,
        max_length=1024,
        help_text=_HOW_LONG,
        widget=forms.PasswordInput({"autocomplete": "new-password"}),
    )


class CodeForm(ConsoleForm):
    """A code of the app, or one from paper."""

    refusals: ClassVar = {"too_many_attempts": "code"}

    code = forms.CharField(
        label="Code",
        max_length=64,
        widget=forms.TextInput(
            {"autocomplete": "one-time-code", "spellcheck": "false", "autocapitalize": "off", "class": "mono"}
        ),
    )


class ProofForm(ConsoleForm):
    """The password, or a code where the account has a second factor."""

    refusals: ClassVar = {"too_many_attempts": "proof"}

    proof = forms.CharField(
        label="Password",
        strip=False,
        max_length=1024,
        widget=forms.PasswordInput({"autocomplete": "current-password", "autofocus": True}),
    )

    def __init__(self, *args: Any, user: User, **options: Any) -> None:
        super().__init__(*args, **options)
        if user.second_factor_at is not None:
            self.fields["proof"].label = "Password, or a code from your app"


class ForgottenForm(ConsoleForm):
    """Whose password is forgotten."""

    email = AddressField(widget=forms.EmailInput(_EMAIL | {"autofocus": True}))


class ResetForm(ConsoleForm):
    """Another password, for whoever has the link."""

    password = forms.CharField(
        label="New password",
        strip=False,
        max_length=1024,
        help_text=_HOW_LONG,
        widget=forms.PasswordInput({"autocomplete": "new-password"}),
    )
    revokes_keys = forms.BooleanField(
        label="Revoke all my API keys and access keys, too",
        required=False,
        help_text="Programs that use them stop at once. Without it, keys go on working.",
    )


class AddressForm(ConsoleForm):
    """Another address for the account."""

    refusals: ClassVar = {"too_many_mails": "email", "too_many_attempts": "email"}

    email = AddressField(label="New address", widget=forms.EmailInput(_EMAIL))


class OrganisationForm(ConsoleForm):
    """The name of one more organisation of the person's own."""

    refusals: ClassVar = {"already_exists": "name"}

    name = forms.CharField(label="Name", max_length=128, help_text="Such as your company or a team of it.")


class JoinForm(ConsoleForm):
    """A person whose address an invitation says."""

    refusals: ClassVar = {"email": "password"}

    name = forms.CharField(
        label="Your name", max_length=128, required=False, widget=forms.TextInput({"autocomplete": "name"})
    )
    password = forms.CharField(
        label="Password",
        strip=False,
        max_length=1024,
        help_text=_HOW_LONG,
        widget=forms.PasswordInput({"autocomplete": "new-password"}),
    )


class InvitationForm(ConsoleForm):
    """Whom to invite into the organisation, and in which role."""

    refusals: ClassVar = {"too_many_invitations": "email", "too_many_mails": "email"}

    email = AddressField(
        help_text="They need not have an account yet.",
        widget=forms.EmailInput(_EMAIL | {"autocomplete": "off"}),
    )
    role = forms.ChoiceField(label="Role", choices=Role.choices, initial=Role.MEMBER)


class RoleForm(ConsoleForm):
    """Another role for a member."""

    role = forms.ChoiceField(choices=Role.choices)


class ApiKeyForm(ConsoleForm):
    """What a new API key is to be called."""

    name = forms.CharField(
        label="Name",
        max_length=128,
        help_text="What will use it, such as “deploy pipeline”.",
        widget=forms.TextInput({"autocomplete": "off"}),
    )
