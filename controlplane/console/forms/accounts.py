"""Signing up and in, organisations, members, API keys."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from controlplane.accounts import custom_roles
from controlplane.accounts.models import User
from controlplane.accounts.scopes import CHANGE, CHANGING, LOOK, SCOPES, WHOLE_OF
from controlplane.accounts.service_accounts import LONGEST_DESCRIPTION, ROLE_CHOICES
from controlplane.accounts.services import password_checked
from controlplane.console.forms.base import AddressField, CidrsField, ConsoleForm, OnceForm
from controlplane.core.errors import Invalid
from controlplane.instances.selectors import instance_list
from controlplane.tenants.models import Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controlplane.accounts.models import SignUp
    from controlplane.tenants.models import Organisation

_EMAIL = {"autocomplete": "email", "inputmode": "email", "spellcheck": "false", "autocapitalize": "off"}

LAST_YEAR = 9_998
SCOPE_WORDS = {
    "read": "look at everything but messages, costs and the audit trail",
    "instances": "instances: sizes, configuration, throttle rules",
    "instances_create": "create instances",
    "instances_change": "change instances",
    "instances_delete": "delete instances",
    "topics": "topics, consumer groups, transactions",
    "topics_change": "create and change topics, end transactions (a shorter retention deletes records, too)",
    "topics_delete": "delete topics",
    "groups": "consumer groups: reset offsets, create, delete, remove members",
    "messages": "messages: read, send, delete",
    "messages_send": "send messages, set schemas",
    "messages_delete": "delete records, and tables of deleted loads",
    "messages_load": "load topics into a lake",
    "access": "access: whitelists, routes, certificates, users, ACLs",
    "alarms": "alarms and receivers",
    "billing": "costs, bills, budgets",
    "audit": "the audit trail",
    "members": "members and invitations: as good as all that you may",
}
"""Of scopes.SCOPES, as people read them. Parts stand below their whole, and take it for granted that one looks."""
LOOK_WORDS = SCOPE_WORDS | {
    "instances": "instances: sizes, configuration, throttle rules",
    "messages": "what stands in messages",
    "members": "who belongs to the organisation",
}
"""The same, of a role that looks."""
CHANGE_WORDS = SCOPE_WORDS | {"messages_delete": "delete tables of deleted loads (owners alone delete records)"}
"""The same, of a role that changes."""
_HOW_LONG = "At least 10 characters. A few words are easier to remember than symbols."


class ScopesWidget(forms.CheckboxSelectMultiple):
    """Boxes of scopes; those of parts are set in below their whole."""

    def create_option(self, name: str, value: Any, *args: Any, **options: Any) -> dict[str, Any]:
        """With a class for the style sheet where it is a part."""
        option = super().create_option(name, value, *args, **options)
        if str(value) in WHOLE_OF:
            option["attrs"]["class"] = "part"
        return option


def _new_password(*, label: str) -> forms.CharField:
    return forms.CharField(
        label=label,
        strip=False,
        max_length=1024,
        help_text=_HOW_LONG,
        widget=forms.PasswordInput({"autocomplete": "new-password"}),
    )


def _own_name() -> forms.CharField:
    return forms.CharField(
        label="Your name", max_length=128, required=False, widget=forms.TextInput({"autocomplete": "name"})
    )


class _FoundingForm(ConsoleForm):
    """A person, and an organisation of their own."""

    name = _own_name()
    organisation_name = forms.CharField(
        label="Organisation",
        max_length=128,
        help_text="Instances, keys and bills belong to it. You can add colleagues later.",
        widget=forms.TextInput({"autocomplete": "organization"}),
    )
    password = _new_password(label="Password")


class SignUpForm(_FoundingForm):
    """The first step. Where a mail is sent, the password is chosen behind its link."""

    refusals: ClassVar = {"already_exists": "organisation_name"}
    field_order: ClassVar = ("email",)

    email = AddressField(widget=forms.EmailInput(_EMAIL))

    def __init__(self, *args: Any, asks_password: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        if not asks_password:
            del self.fields["password"]

    def clean(self) -> dict[str, Any]:
        """A password that will not do is said beside whatever else is wrong, and not once that is mended."""
        found: dict[str, Any] = super().clean() or self.cleaned_data
        if found.get("password"):
            try:
                password_checked(found["password"], User(email=found.get("email", ""), name=found.get("name", "")))
            except Invalid as error:
                self.refuse(error)
        return found


class SignUpConfirmForm(_FoundingForm):
    """The rest of it, for whoever reads the address; what was typed before can be mended."""

    refusals: ClassVar = {"already_exists": "organisation_name", "email": "password"}

    def __init__(self, *args: Any, asked: SignUp, **options: Any) -> None:
        known = {"name": asked.name, "organisation_name": asked.organisation_name}
        super().__init__(*args, initial=known, **options)
        if not asked.organisation_name:
            del self.fields["organisation_name"]


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

    name = _own_name()


class PasswordForm(ConsoleForm):
    """Another password, for whoever knows the one of today."""

    current = forms.CharField(
        label="Current password",
        strip=False,
        max_length=1024,
        widget=forms.PasswordInput({"autocomplete": "current-password"}),
    )
    password = _new_password(label="New password")


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

    def __init__(self, *args: Any, user: User, by_factor: bool = False, **options: Any) -> None:
        super().__init__(*args, **options)
        if by_factor:
            self.fields["proof"].label = "Code from your app, or a recovery code"
            self.fields["proof"].widget.attrs["autocomplete"] = "one-time-code"
        elif user.second_factor_at is not None:
            self.fields["proof"].label = "Password, or a code from your app"


class PasskeyForm(ConsoleForm):
    """What a new passkey is to be called."""

    name = forms.CharField(
        label="Name",
        max_length=128,
        help_text="Where it is kept, such as “phone” or “key on my ring”.",
        widget=forms.TextInput({"autocomplete": "off"}),
    )


class ForgottenForm(ConsoleForm):
    """Whose password is forgotten."""

    email = AddressField(widget=forms.EmailInput(_EMAIL | {"autofocus": True}))


class ResetForm(ConsoleForm):
    """Another password, for whoever has the link."""

    password = _new_password(label="New password")
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


class TransferForm(ConsoleForm):
    """Who is to be an owner of the organisation, and what the person who asks is then."""

    refusals: ClassVar = {
        "already_owner": "email",
        "member_cannot_act": "email",
        "not_found": "email",
        "member_id": "email",
    }

    email = AddressField(
        label="Address of the member",
        help_text="They belong to the organisation already.",
        widget=forms.EmailInput(_EMAIL | {"autocomplete": "off"}),
    )
    step_down = forms.ChoiceField(
        label="What you are afterwards",
        choices=[("", "An owner, as before"), *ROLE_CHOICES],
        required=False,
    )

    def __init__(self, *args: Any, own_roles: Sequence[tuple[str, str]] = (), **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["step_down"].choices = [*self.fields["step_down"].choices, *own_roles]

    def wanted(self) -> dict[str, str]:
        """What `ownership_transfer` takes of stepping down."""
        said = self.cleaned_data["step_down"]
        if not said:
            return {}
        return {"custom_role" if said.startswith(custom_roles.PREFIX) else "step_down_to": said}


class JoinForm(ConsoleForm):
    """A person whose address an invitation says."""

    refusals: ClassVar = {"email": "password"}

    name = _own_name()
    password = _new_password(label="Password")


class InvitationForm(ConsoleForm):
    """Whom to invite into the organisation, and in which role."""

    refusals: ClassVar = {"too_many_invitations": "email", "too_many_mails": "email", "not_found": "role"}

    email = AddressField(
        help_text="They need not have an account yet.",
        widget=forms.EmailInput(_EMAIL | {"autocomplete": "off"}),
    )
    role = forms.ChoiceField(label="Role", choices=Role.choices, initial=Role.MEMBER)

    def __init__(self, *args: Any, own_roles: Sequence[tuple[str, str]] = (), **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["role"].choices = [*self.fields["role"].choices, *own_roles]


class RoleForm(ConsoleForm):
    """Another role for a member: one of all organisations, or the id of one of their own."""

    role = forms.CharField(max_length=32)


class CustomRoleForm(ConsoleForm):
    """A role of the organisation's own: of each scope whether it may be looked at, or changed."""

    refusals: ClassVar = {"already_exists": "name", "too_many_roles": "name", "scopes": "looks"}

    name = forms.CharField(label="Name", max_length=128, widget=forms.TextInput({"autocomplete": "off"}))
    description = forms.CharField(
        label="Description",
        max_length=LONGEST_DESCRIPTION,
        required=False,
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    looks = forms.MultipleChoiceField(
        label="What it may look at",
        choices=[(scope, LOOK_WORDS[scope]) for scope in SCOPES if scope not in WHOLE_OF],
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    changes = forms.MultipleChoiceField(
        label="What it may change",
        choices=[(scope, CHANGE_WORDS[scope]) for scope in CHANGING],
        required=False,
        help_text="Each includes those set in below it, and looking. "
        "What owners decide stays theirs: members, budgets, the price plan.",
        widget=ScopesWidget,
    )
    instances = forms.CharField(
        label="Only these instances",
        required=False,
        max_length=20_000,
        help_text="One id a line. Empty: all, those to come too.",
        widget=forms.Textarea({"rows": 2, "spellcheck": "false", "autocomplete": "off", "autocapitalize": "off"}),
    )

    def wanted(self) -> dict[str, Any]:
        """What `custom_role_create` takes."""
        said = self.cleaned_data
        scopes = dict.fromkeys(said["looks"], LOOK) | dict.fromkeys(said["changes"], CHANGE)
        ids = said["instances"].split()
        return {"name": said["name"], "description": said["description"], "scopes": scopes, "instances": ids or None}


class ServiceAccountForm(ConsoleForm):
    """What a service account is called, what it is for, and what its keys may do."""

    refusals: ClassVar = {"already_exists": "name", "too_many_service_accounts": "name"}

    name = forms.CharField(
        label="Name",
        max_length=128,
        help_text="What will use it, such as “deploy pipeline”.",
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    description = forms.CharField(
        label="Description",
        max_length=LONGEST_DESCRIPTION,
        required=False,
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    role = forms.ChoiceField(
        label="Role",
        choices=ROLE_CHOICES,
        initial=Role.MEMBER,
        help_text="What its keys may do. It never decides who belongs here, and makes no keys.",
    )

    def __init__(self, *args: Any, own_roles: Sequence[tuple[str, str]] = (), **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["role"].choices = [*self.fields["role"].choices, *own_roles]

    def wanted(self) -> dict[str, Any]:
        """What the services take: a role of all organisations, or one of their own."""
        said = dict(self.cleaned_data)
        role = said.pop("role")
        return {**said, **custom_roles.role_named(role)}


class ApiKeyForm(OnceForm):
    """What a new API key is to be called, and what it is limited to."""

    refusals: ClassVar = {"expires_at": "expires_on"}

    name = forms.CharField(
        label="Name",
        max_length=128,
        help_text="What will use it, such as “deploy pipeline”.",
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    scopes = forms.MultipleChoiceField(
        label="What it may do",
        choices=list(SCOPE_WORDS.items()),
        required=False,
        help_text="None chosen: all that you may. Each includes those set in below it, and looking.",
        widget=ScopesWidget,
    )
    instances = forms.CharField(
        label="Only these instances",
        required=False,
        max_length=20_000,
        help_text="One id or name a line. Empty: all, those to come too.",
        widget=forms.Textarea({"rows": 2, "spellcheck": "false", "autocomplete": "off", "autocapitalize": "off"}),
    )
    addresses = CidrsField(
        label="Only from these addresses",
        help_text="One address or CIDR block a line, such as 203.0.113.0/24. Empty: from anywhere.",
    )
    expires_on = forms.DateField(
        label="Expires on",
        required=False,
        widget=forms.DateInput({"type": "date"}, format="%Y-%m-%d"),
        help_text="At the end of this day, UTC. You have a mail seven days before. Empty: never.",
    )

    def __init__(
        self, data: Any = None, *, organisation: Organisation, only: frozenset[str] | None = None, id_of: str = "id_%s"
    ) -> None:
        super().__init__(data, auto_id=id_of)
        self.fields["addresses"].widget.attrs["rows"] = 2
        self._organisation, self._only = organisation, only

    def clean_instances(self) -> list[str]:
        """Their ids."""
        names = [line.strip() for line in self.cleaned_data["instances"].splitlines() if line.strip()]
        found: list[str] = []
        rows = (
            list(instance_list(organisation=self._organisation, only=self._only).values_list("pk", "name"))
            if names
            else []
        )
        for name in names:
            matching = [pk for pk, called in rows if pk == name] or [pk for pk, called in rows if called == name]
            if len(matching) != 1:
                reason = "several instances are called so: take the id" if matching else "there is no such instance"
                raise forms.ValidationError(f"{name}: {reason}")
            found += matching
        return found

    def clean_expires_on(self) -> datetime | None:
        """The beginning of the day after it."""
        day = self.cleaned_data["expires_on"]
        if day is None or day.year > LAST_YEAR:
            return None if day is None else datetime.max.replace(tzinfo=UTC)
        return datetime.combine(day + timedelta(days=1), time(), UTC)

    def wanted(self) -> dict[str, Any]:
        """What `api_key_create` takes; nothing is no limit."""
        names = {"scopes": "scopes", "instances": "instances", "addresses": "addresses", "expires_on": "expires_at"}
        limits = {member: self.cleaned_data[field] or None for field, member in names.items()}
        return {"name": self.cleaned_data["name"], **limits}


class RotationForm(ConsoleForm):
    """How long both secrets are good."""

    overlap_s = forms.TypedChoiceField(
        coerce=int,
        choices=[(86_400, "for a day"), (3_600, "for an hour"), (7 * 86_400, "for a week"), (0, "not at all")],
    )
