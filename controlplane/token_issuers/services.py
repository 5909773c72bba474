"""Token issuers are made and removed, and their keys are there, renewed in time, and stand in the cluster.

Keys are fetched before an issuer is trusted: what is wrong is told to whoever can mend it. From then on beat has them fetched
every `fetch_every_s`. While that fails, the last good ones stay, and the row says since when and why; it is tried again sooner.

Rows and node are written in one transaction of the database, the node last: what is told has happened is in force within 2 s.
Where the commit itself fails behind it, the next fetch makes the node what the rows say.
"""

from __future__ import annotations

import logging
import random
import time
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction

from controlplane.clusters import coordination, zookeeper
from controlplane.core import audit, ids
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.dry_runs import Outlook, PlanStep
from controlplane.core.errors import AlreadyExists, Conflict, Invalid, LimitReached, SluiceError, TooManyAttempts
from controlplane.instances.models import Instance
from controlplane.instances.selectors import instance_running_get
from controlplane.token_issuers import fetching, installed
from controlplane.token_issuers.allowed import key_address
from controlplane.token_issuers.keys import KeySetProblem, keys_of
from controlplane.token_issuers.models import TokenIssuer
from controlplane.token_issuers.selectors import token_issuer_get
from quota.contracts.apart import token_issuers_from_json, token_issuers_path
from quota.contracts.instance import UnreadAccessError
from quota.contracts.token_issuers import MOST_ISSUERS, TokenIssuerSet, TokenKey, issuers_problem
from quota.contracts.token_issuers import TokenIssuer as Trusted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from controlplane.tenants.models import Organisation
    from controlplane.token_issuers.allowed import KeyAddress

LOG = logging.getLogger(__name__)
AGAIN_AFTER_FAILURE_S = 60
LEAST_BETWEEN_S = 30
"""A tenant may have keys fetched at once, but not all the time."""
ROUND_S, ROUND_MOST = 30.0, 500
"""What one round of renewing takes at most, and how many issuers it looks at; the rest are the first of the next."""
SLOW_S = 1.0
"""A host that takes longer, and then fails, is not asked again in the same round: it would hold up everybody else's."""
Keys = tuple[TokenKey, ...]


def token_issuer_create(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    issuer: str,
    jwks_url: str,
    audiences: Sequence[str],
    principal_claim: str = "sub",
    scope: str | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> TokenIssuer:
    """Tokens of this issuer let in from now on. Raises NotFound, Invalid, Conflict, LimitReached, ClusterUnavailable."""
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    row = TokenIssuer(
        id=ids.token_issuer_id(random.SystemRandom()),
        organisation=organisation,
        instance=instance,
        issuer=issuer,
        jwks_url=jwks_url,
        audiences=list(dict.fromkeys(audiences)),
        principal_claim=principal_claim,
        scope=scope or "",
        created_at=clock.now(),
    )
    problem = issuers_problem([_trusted(row)])
    if problem is not None:
        raise Invalid(problem, code="invalid_token_issuer")
    try:
        _have_keys(row, _keys_at(jwks_url), clock.now())
    except KeySetProblem as error:
        raise Invalid.field("jwks_url", str(error)) from error
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            _audit(row, actor, "create", _said(row))
            publish(instance)
    except IntegrityError as error:
        raise AlreadyExists(f"the instance trusts {issuer} already", code="token_issuer_exists") from error
    return row


def token_issuer_delete(*, organisation: Organisation, actor: str, instance_id: str, issuer_id: str) -> None:
    """Its tokens let nobody in any more, and whom they have let in is cut off. Raises NotFound, Conflict, ClusterUnavailable."""
    row = token_issuer_get(organisation=organisation, instance_id=instance_id, issuer_id=issuer_id)
    with transaction.atomic():
        _audit(row, actor, "delete", _said(row))
        TokenIssuer.objects.for_organisation(organisation).filter(pk=row.pk).delete()
        publish(row.instance)


def token_issuer_refresh(
    *, organisation: Organisation, actor: str, instance_id: str, issuer_id: str, clock: Clock = SYSTEM_CLOCK
) -> TokenIssuer:
    """Fetch its keys now; how that went is in the row. Raises NotFound, TooManyAttempts, ClusterUnavailable."""
    row = token_issuer_get(organisation=organisation, instance_id=instance_id, issuer_id=issuer_id)
    now = clock.now()
    if not _claimed(row, now, before=now - timedelta(seconds=LEAST_BETWEEN_S)):
        raise TooManyAttempts(LEAST_BETWEEN_S)
    _renew(row, _tried(row.jwks_url), clock)
    _audit(row, actor, "refresh", {"error": row.keys_error})
    return row


def token_issuer_refresh_check(
    *, organisation: Organisation, instance_id: str, issuer_id: str, clock: Clock = SYSTEM_CLOCK
) -> Outlook:
    """What fetching its keys now would do, without asking its host. Raises NotFound, TooManyAttempts."""
    row = token_issuer_get(organisation=organisation, instance_id=instance_id, issuer_id=issuer_id)
    if row.keys_tried_at > clock.now() - timedelta(seconds=LEAST_BETWEEN_S):
        raise TooManyAttempts(LEAST_BETWEEN_S)
    try:
        problems: tuple[str, ...] = ()
        _address_of_keys(row.jwks_url)
    except (KeySetProblem, Conflict) as error:
        problems = (str(error),)
    step = PlanStep(
        "fetch_keys", f"keys are fetched from {urlsplit(row.jwks_url).hostname}: {len(row.keys)} are known now"
    )
    return Outlook({}, problems=problems, otherwise=(step,))


def refresh_due(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Fetch anew the keys of which it is time; how many issuers were asked about. An address is asked once a round.

    What goes wrong with one is logged, or stands in its row, and keeps nobody else from it. Issuers of instances that are gone
    go, too.
    """
    rows = TokenIssuer.objects.unscoped("keys of all instances are renewed")
    rows.exclude(instance__deleted_at=None).delete()
    due = rows.filter(next_fetch_at__lte=clock.now()).select_related("instance__cluster").order_by("next_fetch_at")
    asking, done, until = _Asking(), 0, time.monotonic() + ROUND_S
    for row in list(due[:ROUND_MOST]):
        if time.monotonic() > until:
            LOG.warning("keys of token issuers are behind: a round of %s s was not enough", ROUND_S)
            break
        if not _claimed(row, clock.now(), before=row.keys_tried_at):
            continue
        try:
            _renew(row, asking.of(row.jwks_url), clock)
        except SluiceError as error:
            LOG.warning("token issuers of %s are not as they should be: %s", row.instance_id, error)
        except Exception:  # whatever is the matter with one must not keep the others from being renewed
            LOG.exception("token issuers of %s", row.instance_id)
        done += 1
    return done


@transaction.atomic
def publish(instance: Instance) -> None:
    """Have the node in ZooKeeper be what the rows say. Raises NotFound where brokers have not been told of the instance.

    One of an instance at a time, until its rows are committed: who read them while another deletes an issuer would write that
    issuer into the node again behind him, and with the row gone nobody would ever take it out.
    """
    Instance.objects.unscoped("it was looked up in its organisation").select_for_update().get(pk=instance.pk)

    def decide(data: bytes | None) -> bytes | None:
        rows = TokenIssuer.objects.unscoped("the instance was looked up in its organisation").filter(instance=instance)
        wanted = tuple(_trusted(row) for row in rows.order_by("issuer"))
        problem = issuers_problem(wanted)
        if problem is not None:
            raise LimitReached(problem, code="too_many_token_issuers" if len(wanted) > MOST_ISSUERS else "too_large")
        try:
            before = token_issuers_from_json(data)
        except UnreadAccessError:  # whoever wrote that: brokers cannot read it either
            before = TokenIssuerSet(int(time.time()))  # a later version than any that was counted up to
        after = before.changed(wanted)
        return None if after.items == before.items else after.to_json()

    coordination.beside_write(
        zookeeper.tree(instance.cluster.address), instance.id, token_issuers_path(instance.id), decide
    )


# --- keys -------------------------------------------------------------------------------------------------------------


def _keys_at(url: str) -> Keys:
    """Raises KeySetProblem, and Conflict where no instance can have token issuers."""
    return keys_of(fetching.fetched(_address_of_keys(url)))


def _address_of_keys(url: str) -> KeyAddress:
    """Where they may be fetched. Raises as `_keys_at`."""
    places = installed.places()
    if not places:
        raise Conflict(
            "this installation fetches keys from nowhere, so no instance can trust token issuers: its operators have to list "
            "the hosts from which it may (SLUICE_TOKEN_ISSUER_HOSTS)",
            code="token_issuers_off",
        )
    try:
        return key_address(url, places)
    except ValueError as error:
        raise KeySetProblem(str(error)) from error


def _tried(url: str) -> Keys | str:
    """The keys, or why there are none."""
    try:
        return _keys_at(url)
    except (KeySetProblem, Conflict) as error:
        return str(error)


class _Asking:
    """What was answered in one round: each address is asked once, and a host that is away once."""

    def __init__(self) -> None:
        self._answers: dict[str, Keys | str] = {}
        self._away: dict[str, str] = {}  # why, by host and port

    def of(self, url: str) -> Keys | str:
        """The keys, or why there are none."""
        host = urlsplit(url).netloc
        if url not in self._answers:
            began = time.monotonic()
            found = self._answers[url] = self._away.get(host) or _tried(url)
            if isinstance(found, str) and time.monotonic() - began > SLOW_S:
                self._away[host] = found
        return self._answers[url]


def _claimed(row: TokenIssuer, now: datetime, *, before: datetime) -> bool:
    """Whether it is ours to fetch: nobody else has tried since."""
    rows = TokenIssuer.objects.unscoped("one row, by its key").filter(pk=row.pk, keys_tried_at__lte=before)
    return rows.update(keys_tried_at=now, next_fetch_at=now + timedelta(seconds=AGAIN_AFTER_FAILURE_S)) == 1


def _renew(row: TokenIssuer, found: Keys | str, clock: Clock) -> None:
    """What was fetched stands in its row, and in the cluster."""
    if isinstance(found, str):
        row.keys_tried_at, row.keys_error = clock.now(), found
        row.next_fetch_at = row.keys_tried_at + timedelta(seconds=min(AGAIN_AFTER_FAILURE_S, installed.fetch_every_s()))
    else:
        _have_keys(row, found, clock.now())
    members = {
        name: getattr(row, name) for name in ("keys", "keys_fetched_at", "keys_tried_at", "keys_error", "next_fetch_at")
    }
    TokenIssuer.objects.unscoped("one row, by its key").filter(pk=row.pk).update(**members)  # it may be gone
    publish(row.instance)


def _have_keys(row: TokenIssuer, keys: Keys, now: datetime) -> None:
    row.keys = [key.document() for key in keys]
    row.keys_fetched_at = row.keys_tried_at = now
    row.keys_error = ""
    row.next_fetch_at = now + timedelta(seconds=installed.fetch_every_s())


def _trusted(row: TokenIssuer) -> Trusted:
    keys = tuple(TokenKey.from_document(key) for key in row.keys)
    return Trusted(row.issuer, tuple(row.audiences), row.principal_claim, row.scope or None, keys)


def _said(row: TokenIssuer) -> dict[str, object]:
    """Its members as the audit trail has them."""
    members = ("issuer", "jwks_url", "audiences", "principal_claim", "scope")
    return {name: getattr(row, name) for name in members}


def _audit(row: TokenIssuer, actor: str, action: str, detail: dict[str, object]) -> None:
    audit.record(
        organisation=row.organisation,
        actor=actor,
        action=f"token_issuer.{action}",
        target=f"{row.instance_id}/{row.pk}",
        detail=detail,
    )
