"""People, who sign in by email, links that are sent to them, their API keys, and their access keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models

from controlplane.accounts.identity.engine import SessionStore
from controlplane.accounts.scopes import Limits
from controlplane.core.scope import TenantManager
from controlplane.sealing.fields import SealedField
from controlplane.tenants.models import Role

if TYPE_CHECKING:
    from datetime import datetime


class UserManager(BaseUserManager["User"]):
    """Makes people. Emails are compared in lower case."""

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        """A person; without a password, one who cannot sign in to the console."""
        user = self.model(email=self.normalize_email(email).lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        """An operator of the service."""
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)

    def get_by_natural_key(self, username: str | None) -> User:
        """Sign-in looks people up by this."""
        return self.get(email=(username or "").lower())


class User(AbstractBaseUser, PermissionsMixin):
    """A person. `is_staff` operates the service; a tenant's rights come from memberships."""

    email = models.EmailField(unique=True)
    name = models.CharField(max_length=128, blank=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    email_verified_at = models.DateTimeField(null=True)  # null: nobody has shown that they read this address
    second_factor_at = models.DateTimeField(null=True)  # since when one is asked for; null: the password is enough
    must_confirm_email = models.BooleanField(
        default=False, db_default=False
    )  # signed up when mails could be sent: standing.py
    # Of the mails to them: one of the service's (core/wording.py). Of pages the cookie decides.
    language = models.CharField(max_length=10, default="en", db_default="en")

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    def __str__(self) -> str:
        return self.email


class LinkPurpose(models.TextChoices):
    """What a link by e-mail is for."""

    VERIFY = "verify"
    CHANGE = "change"
    RESET = "reset"
    BROWSER = "browser"


class MailedLink(models.Model):
    """A link that was sent to one address, for one account and one purpose. The secret in it is stored as a hash."""

    digest = models.CharField(primary_key=True, max_length=64)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    purpose = models.CharField(max_length=8, choices=LinkPurpose)
    address = models.EmailField()
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)
    used_at = models.DateTimeField(null=True)  # or ended, since it is for nothing any more

    class Meta:
        """Those of an account are counted, the newest first."""

        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["user", "purpose", "created_at"])]

    def __str__(self) -> str:
        return f"{self.purpose} of {self.address}"


class Session(AbstractBaseSession):
    """A session of the console: identity/engine.py writes it. A row that is gone is a session that has ended."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="+")  # null: nobody yet
    address = models.CharField(max_length=64, default="", blank=True)  # of the request that signed in
    agent = models.CharField(max_length=300, default="", blank=True)  # its `User-Agent`
    begun_at = models.DateTimeField()
    seen_at = models.DateTimeField()  # to the minute

    class Meta(AbstractBaseSession.Meta):
        """Those of a person are listed; abstract no more."""

        abstract = False
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["user", "seen_at"])]

    @classmethod
    def get_session_store_class(cls) -> type[SessionStore]:
        """What reads and writes it."""
        return SessionStore

    def __str__(self) -> str:
        return f"session of {self.user_id}"


class SecondFactor(models.Model):
    """What the app of a person makes codes with; identity/second_factor.py."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    secret = SealedField(owner=("user_id",), before="sluice second factor {user_id}")
    last_step = models.BigIntegerField(default=0)  # of the last code that was taken

    def __str__(self) -> str:
        return f"second factor of {self.user_id}"


class RecoveryCode(models.Model):
    """One of ten, in place of a code of the app, once. Stored as a hash."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64)
    used_at = models.DateTimeField(null=True)

    class Meta:
        """Looked up by what was typed."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["user", "digest"], name="one_recovery_code")
        ]

    def __str__(self) -> str:
        return f"recovery code of {self.user_id}"


class Passkey(models.Model):
    """A passkey of a person: what they sign in with, or the second factor beside their password. identity/passkeys.py."""

    id = models.CharField(primary_key=True, max_length=32)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    name = models.CharField(max_length=128)
    credential_id = models.CharField(max_length=1400, unique=True)  # base64url; the browser names it by this
    credential = models.CharField(max_length=4000)  # base64url: its id and public key, as the authenticator gave them
    handle = models.CharField(
        max_length=64
    )  # base64url, random: the same for all passkeys of a person, and says nothing
    sign_count = models.BigIntegerField(default=0)  # 0: its authenticator does not count
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    refused_at = models.DateTimeField(null=True)  # when its counter was last found to have gone back

    class Meta:
        """Those of a person are listed."""

        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["user", "created_at"], name="passkeys_of_a_person")
        ]

    def __str__(self) -> str:
        return f"passkey of {self.user_id}"


class DoorKind(models.TextChoices):
    """What somebody has done at the door with an address."""

    RESET = "reset"  # they have forgotten the password
    BROWSER = "browser"  # they are kept out, where nobody has signed in before
    FAILED = "failed"  # they have not got in


class DoorNote(models.Model):
    """What was done with an address that may be nobody's, until the worker has looked: identity/door.py."""

    kind = models.CharField(max_length=8, choices=DoorKind)
    email = models.CharField(max_length=254)
    at = models.DateTimeField()
    request_id = models.CharField(max_length=36, default="", blank=True)
    address = models.CharField(max_length=64, default="", blank=True)  # where the request came from

    def __str__(self) -> str:
        return f"{self.kind} of {self.email}"


class SignUp(models.Model):
    """Somebody wants an account with an address; there is none until the link is used: identity/signing_up.py."""

    email = models.EmailField()
    name = models.CharField(max_length=128, blank=True)
    organisation_name = models.CharField(max_length=128, blank=True)  # to be founded; empty: they are invited into one
    at = models.DateTimeField(db_index=True)
    request_id = models.CharField(max_length=36, default="", blank=True)
    address = models.CharField(max_length=64, default="", blank=True)  # where the request came from
    answered_at = models.DateTimeField(null=True)  # null: the worker has not looked yet
    mailed_at = models.DateTimeField(null=True)  # null: no mail was written
    digest = models.CharField(max_length=64, default="", blank=True)  # of the link's secret; empty: there is no link
    used_at = models.DateTimeField(null=True)
    language = models.CharField(max_length=10, default="en", db_default="en")  # of the page, and of the mail

    class Meta:
        """The worker looks for those that wait, and counts the mails to an address; a link is for one."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["digest"], condition=~models.Q(digest=""), name="one_sign_up_of_a_link")
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["email", "mailed_at"], name="sign_ups_of_an_address"),
            models.Index(fields=["id"], condition=models.Q(answered_at__isnull=True), name="sign_ups_that_wait"),
        ]

    def __str__(self) -> str:
        return f"sign-up of {self.email}"


class ServiceAccount(models.Model):
    """An identity of an organisation without a person: API keys act as it. It never signs in, and is no member."""

    id = models.CharField(primary_key=True, max_length=32)
    organisation = models.ForeignKey("tenants.Organisation", models.CASCADE, related_name="+")
    name = models.CharField(max_length=128)
    description = models.CharField(max_length=512, default="", blank=True)
    role = models.CharField(max_length=16, choices=Role)  # never that of an owner: service_accounts.py
    # In place of `role`, which is a viewer's then.
    custom_role = models.ForeignKey("tenants.CustomRole", models.PROTECT, null=True, related_name="service_accounts")
    created_by = models.CharField(max_length=254)  # the actor
    created_at = models.DateTimeField()
    disabled_at = models.DateTimeField(null=True)  # null: its keys are good
    deleted_at = models.DateTimeField(null=True)  # the row stays for what its keys have done

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """None can be an owner; names tell those apart that there are."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=models.Q(role__in=(Role.OPERATOR, Role.BILLING, Role.MEMBER, Role.VIEWER)),
                name="no_service_account_owns",
            ),
            models.CheckConstraint(
                condition=models.Q(custom_role__isnull=True) | models.Q(role=Role.VIEWER),
                name="account_with_a_custom_role_is_a_viewer_beside",
            ),
            models.UniqueConstraint(
                fields=["organisation", "name"],
                condition=models.Q(deleted_at__isnull=True),
                name="one_service_account_of_a_name",
            ),
        ]

    def __str__(self) -> str:
        return self.actor

    @property
    def actor(self) -> str:
        """Its name in the audit trail and of operations. The id stays when the name changes."""
        return f"service account {self.name} ({self.id})"

    @property
    def is_active(self) -> bool:
        """Whether its keys are good."""
        return self.disabled_at is None and self.deleted_at is None


class ApiKey(models.Model):
    """What a program acts with: the rights of one person or service account in one organisation, or fewer.

    The secret is stored as a hash.
    """

    id = models.CharField(primary_key=True, max_length=32)
    organisation = models.ForeignKey("tenants.Organisation", models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="+")
    service_account = models.ForeignKey(ServiceAccount, models.CASCADE, null=True, related_name="+")
    name = models.CharField(max_length=128)
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64)
    scopes = models.JSONField(null=True)  # of scopes.SCOPES; null: whatever its owner may
    instances = models.JSONField(null=True)  # ids; null: all of the organisation, those to come too
    addresses = models.JSONField(null=True)  # CIDR blocks that it is used from; null: from anywhere
    expires_at = models.DateTimeField(null=True)  # null: never
    expiry_told_at = models.DateTimeField(null=True)  # its owner has had a mail, or has chosen so near a day
    previous_digest = models.CharField(max_length=64, default="", db_default="", blank=True)
    previous_until = models.DateTimeField(null=True)  # so long the secret before the present one is good as well
    sso_until = models.DateTimeField(null=True)  # key_rules.SSO_LASTS; null: not made by an organisation's provider
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    last_used_address = models.CharField(max_length=64, default="", db_default="", blank=True)
    refused_at = models.DateTimeField(null=True)  # when it came from an address that it is not for; to the hour
    refused_address = models.CharField(max_length=64, default="", db_default="", blank=True)
    revoked_at = models.DateTimeField(null=True)

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """Those that expire soon are looked for. A key is a person's or a service account's."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=models.Q(user__isnull=False, service_account__isnull=True)
                | models.Q(user__isnull=True, service_account__isnull=False),
                name="one_owner_of_an_api_key",
            )
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["expires_at"], condition=models.Q(expires_at__isnull=False), name="api_key_expiry")
        ]

    def __str__(self) -> str:
        return f"{self.name} (slc_{self.prefix}_…)"

    @property
    def owner_name(self) -> str:
        """Whose it is, as the audit trail names them."""
        if self.service_account is not None:
            return self.service_account.actor
        return self.user.email if self.user is not None else ""

    @property
    def limits(self) -> Limits:
        """What it may do within the role of its owner."""
        scopes, instances = (None if names is None else frozenset(names) for names in (self.scopes, self.instances))
        return Limits(scopes, instances, is_bound=self.addresses is not None or self.expires_at is not None)

    def state_at(self, now: datetime) -> str:
        """``active``, ``asleep``, ``expired`` or ``revoked``."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and self.expires_at <= now:
            return "expired"
        return "asleep" if self.is_asleep_at(now) else "active"

    def is_asleep_at(self, now: datetime) -> bool:
        """Whether its person would have to sign in by the organisation's provider before it is good again."""
        return self.sso_until is not None and self.sso_until <= now

    def is_rotating_at(self, now: datetime) -> bool:
        """Whether two secrets are good."""
        return self.previous_until is not None and self.previous_until > now


class AccessKey(models.Model):
    """What a program signs with: one person's rights in one organisation. The secret is in no row: see access_keys.py."""

    id = models.CharField(primary_key=True, max_length=32)
    organisation = models.ForeignKey("tenants.Organisation", models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    name = models.CharField(max_length=128)
    secret_id = models.CharField(max_length=32, unique=True)
    made_with = models.CharField(max_length=16)  # fingerprint of the installation key
    expires_at = models.DateTimeField(null=True)  # null: never
    expiry_told_at = models.DateTimeField(null=True)  # its owner has had a mail
    sso_until = models.DateTimeField(null=True)  # key_rules.SSO_LASTS; null: not made by an organisation's provider
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """Those that expire soon are looked for."""

        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["expires_at"], condition=models.Q(expires_at__isnull=False), name="access_key_expiry")
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.secret_id})"

    def has_expired_at(self, now: datetime) -> bool:
        """Whether nothing is signed with it any more."""
        return self.expires_at is not None and self.expires_at <= now

    def is_asleep_at(self, now: datetime) -> bool:
        """As of an API key: whether its person would have to sign in by the provider before anything is signed with it again."""
        return self.sso_until is not None and self.sso_until <= now
