"""Users, ACLs, token issuers, and the question who may do what."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from controlplane.access import words
from controlplane.access.passwords import LEAST_CHARACTERS, MOST_CHARACTERS
from controlplane.access.presets import Preset
from controlplane.access.serializers import LONGEST_HOST, LONGEST_PRINCIPAL
from controlplane.access.users import EVERY_MECHANISM
from controlplane.console.forms.base import ConsoleForm, ruled
from controlplane.instances.validation import CONFIG_RULES
from controlplane.token_issuers.allowed import LONGEST_URL
from quota.contracts.acls import LONGEST_NAME, Acl, AclOperation, PatternType, Permission, ResourceType
from quota.contracts.token_issuers import LONGEST_TEXT, MOST_AUDIENCES
from quota.contracts.users import user_name_problem
from quota.core.acl_filters import AclFilter

if TYPE_CHECKING:
    from collections.abc import Mapping

BOTH = "both"
HOUR_S, DAY_S = 3_600, 86_400


def _plain(**attributes: str) -> forms.TextInput:
    """An input that no browser corrects."""
    return forms.TextInput({"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off", **attributes})


def _words(names: Any) -> list[tuple[str, str]]:
    return [(name, name) for name in names]


def _password(**options: Any) -> forms.CharField:
    return forms.CharField(
        label="Password",
        required=False,
        strip=False,
        min_length=LEAST_CHARACTERS,
        max_length=MOST_CHARACTERS,
        help_text=f"At least {LEAST_CHARACTERS} characters. Empty: one is made, and shown once.",
        widget=forms.PasswordInput({"autocomplete": "new-password"}),
        **options,
    )


class UserForm(ConsoleForm):
    """A new user."""

    refusals: ClassVar = {"user_exists": "name", "too_many_users": "name"}

    name = forms.CharField(
        label="Name",
        strip=False,
        validators=[ruled(user_name_problem)],
        max_length=1000,  # the name's own rule says more clearly what is wrong
        help_text="What clients log in with. ACLs call it User:name.",
        widget=_plain(),
    )
    password = _password()
    mechanisms = forms.ChoiceField(
        label="Logs in by",
        choices=[(BOTH, "Both SCRAM mechanisms"), *_words(mechanism.value for mechanism in EVERY_MECHANISM)],
        initial=BOTH,
    )

    def wanted(self) -> dict[str, Any]:
        """What `user_create` takes."""
        data = self.cleaned_data
        chosen = data["mechanisms"]
        mechanisms = [mechanism.value for mechanism in EVERY_MECHANISM] if chosen == BOTH else [chosen]
        return {"name": data["name"], "password": data["password"] or None, "mechanisms": mechanisms}


class PasswordForm(ConsoleForm):
    """Another password."""

    password = _password()
    keep_previous_s = forms.TypedChoiceField(
        label="The password before it",
        coerce=int,
        choices=[
            (0, "Ends at once"),
            (HOUR_S, "Stays good for an hour"),
            (DAY_S, "Stays good for a day"),
            (7 * DAY_S, "Stays good for 7 days"),
            (30 * DAY_S, "Stays good for 30 days"),
        ],
        help_text="While both are good, clients can be given the new one after another.",
    )

    def wanted(self) -> dict[str, Any]:
        """What `user_password_set` takes."""
        data = self.cleaned_data
        return {"password": data["password"] or None, "keep_previous_s": data["keep_previous_s"]}


def _principal(**options: Any) -> forms.CharField:
    return forms.CharField(
        label="Principal",
        strip=False,
        max_length=LONGEST_PRINCIPAL,
        initial="User:",
        widget=_plain(),
        **options,
    )


def _host() -> forms.CharField:
    return forms.CharField(
        label="From",
        max_length=LONGEST_HOST,
        initial="*",
        help_text="* is everywhere; or an address, or a block such as 10.0.0.0/8.",
        widget=_plain(),
    )


def _pattern(help_text: str = "") -> forms.ChoiceField:
    return forms.ChoiceField(
        label="The name is",
        choices=[(PatternType.LITERAL.name, "The whole name"), (PatternType.PREFIXED.name, "What names begin with")],
        initial=PatternType.LITERAL.name,
        help_text=help_text,
    )


class CuttingForm(ConsoleForm):
    """ACLs to be made. The box stands beside the list of clients that they would cut off, and only there."""

    accept_cut_off = forms.BooleanField(label="I know that these clients will be refused", required=False)


class AclForm(CuttingForm):
    """One ACL: to be made, or one of a list that is to go."""

    permission = forms.ChoiceField(label="Permission", choices=_words(words.PERMISSIONS), initial=Permission.ALLOW.name)
    principal = _principal(help_text="User:name, or User:* for everybody.")
    operation = forms.ChoiceField(label="Operation", choices=_words(words.OPERATIONS), initial=AclOperation.READ.name)
    resource_type = forms.ChoiceField(
        label="Resource", choices=_words(words.RESOURCE_TYPES), initial=ResourceType.TOPIC.name
    )
    resource_name = forms.CharField(
        label="Name",
        strip=False,
        max_length=LONGEST_NAME,
        help_text="* is each of its type; the cluster is called kafka-cluster.",
        widget=_plain(),
    )
    pattern_type = _pattern()
    host = _host()

    def acl(self) -> Acl:
        """What was said."""
        data = self.cleaned_data
        return Acl(
            ResourceType[data["resource_type"]],
            PatternType[data["pattern_type"]],
            data["resource_name"],
            data["principal"],
            data["host"],
            AclOperation[data["operation"]],
            Permission[data["permission"]],
        )

    def just_this(self) -> AclFilter:
        """The filter that takes it and no other."""
        acl = self.acl()
        return AclFilter(**{name: getattr(acl, name) for name in Acl.__slots__})


class AclRulesForm(ConsoleForm):
    """What holds where no ACL decides: two members of an instance's `config`."""

    allow_everyone_if_no_acl_found = forms.TypedChoiceField(
        label="What has no ACL",
        choices=[("yes", "may be used by everyone who may connect"), ("no", "may be used by super users only")],
        coerce=lambda chosen: chosen == "yes",
        widget=forms.RadioSelect,
        help_text="A topic or group that has an ACL may be used by those only whom one allows.",
    )
    super_users = forms.CharField(
        label="Super users",
        required=False,
        max_length=20_000,
        widget=forms.Textarea({"rows": 4, "spellcheck": "false", "autocomplete": "off", "class": "mono"}),
        help_text="Principals such as User:ann, one a line. They may do everything, whatever ACLs say.",
    )

    def __init__(self, data: Any = None, *, now: Mapping[str, Any]) -> None:
        self._now = now
        everyone = "yes" if now["allow_everyone_if_no_acl_found"] else "no"
        initial = {"allow_everyone_if_no_acl_found": everyone, "super_users": "\n".join(now["super_users"])}
        super().__init__(data, initial=initial)

    def clean_super_users(self) -> list[str]:
        """One a line, judged as REST judges them."""
        lines = [line.strip() for line in self.cleaned_data["super_users"].splitlines()]
        found = [line for line in lines if line]
        ruled(CONFIG_RULES["super_users"])(found)
        return found

    @property
    def changes(self) -> dict[str, Any]:
        """What differs from what is in force."""
        return {name: value for name, value in self.cleaned_data.items() if value != self._now[name]}


class PresetForm(CuttingForm):
    """The ACLs that a kind of program needs."""

    preset = forms.ChoiceField(
        label="The program",
        choices=[(Preset.PRODUCER, "Writes to a topic"), (Preset.CONSUMER, "Reads a topic in a group")],
        initial=Preset.PRODUCER,
        widget=forms.RadioSelect,
    )
    principal = _principal(help_text="Whom it logs in as: User:name.")
    topic = forms.CharField(label="Topic", strip=False, max_length=LONGEST_NAME, widget=_plain())
    group = forms.CharField(
        label="Group",
        strip=False,
        required=False,
        max_length=LONGEST_NAME,
        help_text="Of a program that reads.",
        widget=_plain(),
    )
    pattern_type = _pattern("Of topic and group. By what names begin with, it holds for topics to come as well.")
    host = _host()

    def wanted(self) -> dict[str, Any]:
        """What `acls_preset` takes."""
        data = {name: value for name, value in self.cleaned_data.items() if name != "accept_cut_off"}
        return {**data, "group": data["group"] or None, "pattern_type": PatternType[data["pattern_type"]]}


class QuestionForm(ConsoleForm):
    """May somebody do something?"""

    source = forms.CharField(label="May a client at", max_length=LONGEST_HOST, widget=_plain(placeholder="10.0.0.7"))
    principal = forms.CharField(
        label="As",
        strip=False,
        max_length=LONGEST_PRINCIPAL,
        initial="User:ANONYMOUS",
        help_text="User:ANONYMOUS is whoever has not logged in.",
        widget=_plain(),
    )
    route = forms.ChoiceField(label="By route")
    operation = forms.ChoiceField(
        label="Do",
        choices=_words(word for word in words.OPERATIONS if word != AclOperation.ALL.name),
        initial=AclOperation.WRITE.name,
    )
    resource_type = forms.ChoiceField(label="To", choices=_words(words.RESOURCE_TYPES), initial=ResourceType.TOPIC.name)
    resource_name = forms.CharField(label="Called", strip=False, max_length=LONGEST_NAME, widget=_plain())

    def __init__(self, data: Any = None, *, routes: list[str]) -> None:
        super().__init__(data)
        self.fields["route"].choices = _words(routes)  # type: ignore[attr-defined]

    def clean_source(self) -> str:
        """An address."""
        source = str(self.cleaned_data["source"]).strip()
        try:
            ip_address(source.partition("%")[0])
        except ValueError as error:
            raise forms.ValidationError(f"“{source}” is neither an IPv4 nor an IPv6 address.") from error
        return source


class TokenIssuerForm(ConsoleForm):
    """Whose tokens let in."""

    refusals: ClassVar = {"token_issuer_exists": "issuer"}

    issuer = forms.CharField(
        label="Issuer",
        max_length=LONGEST_TEXT,
        help_text="What “iss” of a token is, to the letter: a slash at the end counts.",
        widget=_plain(placeholder="https://login.example.com/"),
    )
    jwks_url = forms.CharField(
        label="Address of its keys",
        max_length=LONGEST_URL,
        help_text="Its “jwks_uri”. The operators of this service say from which hosts keys may be fetched.",
        widget=_plain(placeholder="https://login.example.com/.well-known/jwks.json"),
    )
    audiences = forms.CharField(
        label="Audiences",
        max_length=MOST_AUDIENCES * (LONGEST_TEXT + 1),
        help_text="One a line. “aud” of a token is, or holds, one of them.",
        widget=forms.Textarea({"rows": 2, "spellcheck": "false", "autocomplete": "off", "class": "mono"}),
    )
    principal_claim = forms.CharField(
        label="Claim that names the principal", max_length=LONGEST_TEXT, initial="sub", widget=_plain()
    )
    scope = forms.CharField(
        label="Scope",
        required=False,
        max_length=LONGEST_TEXT,
        help_text="One that a token has to have. Empty: none.",
        widget=_plain(),
    )

    def wanted(self) -> dict[str, Any]:
        """What `token_issuer_create` takes."""
        data = self.cleaned_data
        audiences = [line.strip() for line in data["audiences"].splitlines() if line.strip()]
        return {**data, "audiences": audiences, "scope": data["scope"] or None}
