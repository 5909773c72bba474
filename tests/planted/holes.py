"""Holes in security, as small changes of the code, and for each a test that fails when it is there.

A hole is a mistake that somebody could make with a good reason: a check that was in the way, a shorter way, a value that was
believed. `before` stands in the file exactly once. Who changes that code adapts the row; `test_planted` says when it does not
fit.
"""

from __future__ import annotations

from dataclasses import dataclass

EVERY_API = (
    "tests/dataplane/handlers/test_acls_of_every_api.py::test_an_api_asks_for_its_right_and_sees_when_it_changes"
)
FOREIGN = "tests/dataplane/handlers/test_what_a_tenant_may_not_fetch.py"


@dataclass(frozen=True, slots=True)
class Hole:
    """One of them. `tests`: what pytest is given, of which at least one must fail."""

    name: str
    what: str  # a sentence: what an attacker can do
    path: str
    before: str
    after: str
    tests: tuple[str, ...]


HOLES: tuple[Hole, ...] = (
    # --- whose a name is, and who may do what -------------------------------------------------------------------------
    Hole(
        "fetch-by-id",
        "A topic that ACLs close is read by its id.",
        "dataplane/handlers/records/fetch_reading.py",
        """        refusal = self._ctx.topic_refusal(Operation.READ, name)
        if refusal:
            return _refused(wanted, refusal)
""",
        """        refusal = ErrorCode.NONE if isinstance(topic, UUID) else self._ctx.topic_refusal(Operation.READ, name)
        if refusal:
            return _refused(wanted, refusal)
""",
        ("tests/dataplane/handlers/test_acls_of_every_api.py::test_a_fetch_asks_to_read_by_name_and_by_id",),
    ),
    Hole(
        "foreign-id",
        "The id of another's topic is as good as one's own.",
        "dataplane/handlers/records/fetch_reading.py",
        "return name if name is not None and self._ctx.owns(name) else None",
        "return name",
        (f"{FOREIGN}::test_a_topic_of_others_by_its_id",),
    ),
    Hole(
        "offset-delete",
        "Offsets of a topic that may not be read are deleted.",
        "dataplane/handlers/groups/offsets.py",
        "    errors = {key: partition_problem(ctx, Operation.READ, *key) for key in rows}\n    valid",
        "    errors = dict.fromkeys(rows, ErrorCode.NONE)\n    valid",
        (EVERY_API, "-k", "OFFSET_DELETE"),
    ),
    Hole(
        "describe-producers",
        "Who writes to a topic is told to who may not read it.",
        "dataplane/handlers/records/producers.py",
        "    refusal = ctx.topic_refusal(Operation.READ, topic)\n",
        "    refusal = ErrorCode.NONE\n",
        (EVERY_API, "-k", "DESCRIBE_PRODUCERS"),
    ),
    Hole(
        "startswith",
        "Names belong to the instance whose key they begin with, dot or not.",
        "quota/contracts/namespace.py",
        'return physical[KEY_LENGTH : KEY_LENGTH + 1] == "." and physical[:KEY_LENGTH] == self.key',
        "return physical.startswith(self.key)",
        ("tests/quota/test_namespace.py",),
    ),
    Hole(
        "allow-first",
        "An ACL that allows stands above one that denies.",
        "quota/core/acls.py",
        "        rules = self.denies if acl.permission is Permission.DENY else self.allows\n",
        "        rules = self.allows if acl.permission is Permission.DENY else self.allows\n",
        ("tests/quota/test_acl_decisions.py",),
    ),
    Hole(
        "last-word",
        "A revoked administrator's request that waited for its turn changes ACLs all the same.",
        "dataplane/handlers/admin/access_nodes.py",
        "        check_still(ctx, Operation.ALTER)\n",
        "",
        ("tests/dataplane/handlers/test_acls.py", "-k", "loses_the_right"),
    ),
    Hole(
        "zones",
        "An ACL for an address of one link holds on all links.",
        "quota/contracts/networks.py",
        "    if ZONE in text:\n        raise",
        "    if not text:\n        raise",
        ("tests/quota/test_networks.py", "tests/quota/test_acls_and_users.py"),
    ),
    Hole(
        "scope",
        "Rows of other organisations are found by their ids.",
        "controlplane/core/scope.py",
        "return super().get_queryset().filter(organisation_id=organisation.pk)",
        "return super().get_queryset()",
        ("tests/controlplane/test_tenant_scope.py",),
    ),
    # --- who somebody is ----------------------------------------------------------------------------------------------
    Hole(
        "authzid",
        "Who logs in by SCRAM says whose rights he wants.",
        "dataplane/security/scram.py",
        '        if found["authzid"] is not None and _name(found["authzid"]) != self._user:\n',
        "        if False:\n",
        ("tests/dataplane/security/test_scram.py::test_nobody_logs_in_on_behalf_of_another",),
    ),
    Hole(
        "nonce",
        "The end of an exchange of SCRAM is good in another one (CVE-2024-56128).",
        "dataplane/security/scram.py",
        """        if not (hmac.compare_digest(found["nonce"], nonce) or hmac.compare_digest(found["nonce"], twice)):
""",
        """        if not (found["nonce"].startswith(self._client_nonce) and nonce and twice):
""",
        ("tests/dataplane/security/test_scram.py",),
    ),
    Hole(
        "deleted-user",
        "A user who is deleted while his password is verified is let in.",
        "dataplane/tenancy/logins.py",
        "return found is not None and any(one.stored_key == stored_key for one in found.credentials)",
        "return stored_key is not None",
        ("tests/dataplane/requests/test_logging_in.py::test_a_user_who_is_deleted_within_his_exchange_is_not_let_in",),
    ),
    Hole(
        "invented-names",
        "Invented names clear the count of guesses at a user's password.",
        "dataplane/security/attempts.py",
        "        if len(self.names) >= MOST_NAMES:\n            return self.others\n",
        "        if len(self.names) >= MOST_NAMES:\n            del self.names[next(iter(self.names))]\n",
        ("tests/dataplane/security/test_attempts.py",),
    ),
    Hole(
        "another-broker",
        "A broker, or who has stolen its credential, speaks in the name of every other.",
        "dataplane/security/roles.py",
        "(identity.role is Role.BROKER and identity.number == number)",
        "identity.role is Role.BROKER",
        ("tests/dataplane/security/test_roles.py",),
    ),
    Hole(
        "short-cut-inside",
        "One of the cluster's own is served from its second fetch on, whatever its role may read.",
        "dataplane/requests/fastpath/fetch.py",
        """        generation = INTERNAL_GENERATION if instance is None else instance.permit.generation
        if shape.permit.generation != generation:
""",
        """        if instance is not None and shape.permit.generation != instance.permit.generation:
""",
        ("tests/dataplane/requests/test_short_cuts_ask_roles.py",),
    ),
    Hole(
        "short-cut-writes",
        "One of the cluster's own is served from its second produce on, whatever its role may write.",
        "dataplane/requests/fastpath/produce.py",
        """        generation = INTERNAL_GENERATION if instance is None else instance.permit.generation
        if shape.permit.generation != generation:
""",
        """        if instance is not None and shape.permit.generation != instance.permit.generation:
""",
        ("tests/dataplane/requests/test_short_cuts_ask_roles.py",),
    ),
    Hole(
        "viewer-searches",
        "A viewer finds out what stands in messages by searching for it.",
        "controlplane/messages/selectors.py",
        "    if not may_read and not wanted.filter.takes_everything:\n",
        "    if wanted.limit < 0:\n",
        ("tests/controlplane/messages/test_messages_api.py::test_a_viewer_cannot_find_out_by_searching",),
    ),
    Hole(
        "replica-id",
        "A tenant that calls itself a replica reads what is not committed.",
        "dataplane/handlers/records/fetch.py",
        "        if not ctx.session.is_internal:\n            raise CloseConnectionError",
        "        if ctx.session.identity is None and ctx.session.is_internal:\n            raise CloseConnectionError",
        (f"{FOREIGN}::test_a_tenant_is_no_replica",),
    ),
    Hole(
        "forwarded-for",
        "Who guesses passwords of the console says in a header which address is to be counted.",
        "controlplane/core/origin.py",
        'request.headers.get("X-Forwarded-For", "") if settings.ENVIRONMENT.tls else ""',
        'request.headers.get("X-Forwarded-For", "")',
        ("tests/controlplane/console/test_guessing_passwords.py",),
    ),
    Hole(
        "proxy-peers",
        "Whoever reaches a route with PROXY headers says which address the whitelist sees.",
        "dataplane/tenancy/proxies.py",
        "return self._peers.allows(peer)",
        "return bool(peer)",
        ("tests/dataplane/network/test_preface.py", "-k", "other_peers or configured"),
    ),
    # --- what one may cost the others ---------------------------------------------------------------------------------
    Hole(
        "array-room",
        "A few bytes that announce a long array take memory for all of it.",
        "dataplane/protocol/codec.py",
        """    source.emit(f"if {length} > end - p: raise DecodeError(f'{{{length}}} elements in {{end - p}} bytes')")
""",
        """    source.emit(f"room = [None] * min({length}, 1 << 22)")
""",
        ("tests/dataplane/protocol/test_hostile_bytes.py::test_a_lying_count_costs_no_memory",),
    ),
    Hole(
        "gzip-bomb",
        "A small batch unpacks to as much as its sender likes.",
        "dataplane/records/compression.py",
        "out += member.decompress(rest, limit - len(out) + 1)",
        "out += member.decompress(rest)",
        ("tests/dataplane/records/test_decompression_is_bounded.py", "-k", "bomb"),
    ),
    Hole(
        "quota-per-connection",
        "Each new connection has the instance's whole limit for itself.",
        "dataplane/requests/turnstile.py",
        "if (bucket.line is not None or bucket.paid_at > now) and not self._passes(bucket, kind, size, now):",
        "if self._clear_owed and bucket.paid_at > now and not self._passes(bucket, kind, size, now):",
        ("tests/dataplane/throttle/test_which_bucket_is_charged.py::test_an_open_connection_is_no_credit",),
    ),
    Hole(
        "handshakes",
        "One address that begins TLS handshakes without end keeps all others of an instance out.",
        "dataplane/network/handshakes.py",
        "in_the_way = next(iter(self._places.fullest(one.peer[0])), None)",
        "in_the_way = None",
        ("tests/dataplane/network/test_handshakes_take_turns.py", "-k", "makes_room"),
    ),
    # --- ZooKeeper ----------------------------------------------------------------------------------------------------
    Hole(
        "master-by-web",
        "The control plane, once it is taken over, is the flow master, and is told brokers' credentials.",
        "quota/contracts/zookeeper.py",
        "/sluice                                 rc      c       -\n",
        "/sluice                                 rc      c       c\n",
        (
            "tests/quota/test_zookeeper_table.py::test_the_control_plane_can_be_neither_master_nor_controller_nor_broker",
        ),
    ),
    Hole(
        "nodes-for-everybody",
        "What processes make in ZooKeeper is everybody's, although ACLs are on.",
        "quota/contracts/zookeeper_login.py",
        "        if not self.closed:\n            return OPEN\n",
        "        if self.verifiers:\n            return OPEN\n",
        ("tests/quota/test_zookeeper_table.py::test_nobody_is_named_who_has_no_right",),
    ),
    # --- where a tenant has us connect to -----------------------------------------------------------------------------
    Hole(
        "webhook-inside",
        "A webhook goes to whatever address its name leads to, metadata services and databases among them.",
        "controlplane/alarms/delivery/posting.py",
        "allowed = [each for each in found if self._target.allows(each, self._networks)]",
        "allowed = [each for each in found if each]",
        ("tests/controlplane/alarms/test_posting.py", "-k", "points_inside"),
    ),
    Hole(
        "webhook-looked-up-again",
        "A name that changes its mind leads a webhook inside: it is looked up again where the connection is made.",
        "controlplane/alarms/delivery/posting.py",
        "        return socket.create_connection((last, self._target.port), self._within_s)\n",
        "        return socket.create_connection((last and self._allowed()[-1], self._target.port), self._within_s)\n",
        ("tests/controlplane/alarms/test_posting.py", "-k", "looked_up_once"),
    ),
    Hole(
        "mail-to-anybody",
        "Alarms are sent to addresses whose readers have not agreed.",
        "controlplane/alarms/delivery/outbox.py",
        'pk__in=wanted, sealed_code=b""',
        "pk__in=wanted",
        ("tests/controlplane/alarms/test_evaluation.py", "-k", "not_confirmed"),
    ),
    Hole(
        "connections-of-all",
        "A tenant asks a broker who is connected to another's instance.",
        "dataplane/handlers/table.py",
        "connections.handle_describe_connections, tenant=False)",
        "connections.handle_describe_connections)",
        ("tests/dataplane/handlers/test_describe_connections.py", "-k", "no_tenant_may_ask"),
    ),
    Hole(
        "backlogs-of-all",
        "A tenant asks a broker how much of another's topic lies from an offset on.",
        "dataplane/handlers/table.py",
        "backlogs.handle_describe_backlogs, tenant=False)",
        "backlogs.handle_describe_backlogs)",
        ("tests/dataplane/handlers/test_describe_backlogs.py", "-k", "a_tenant_is_not_answered"),
    ),
    Hole(
        "key-scope-unasked",
        "An API key with scopes does whatever its owner may.",
        "controlplane/accounts/permissions.py",
        "        caller.limits.admit(*_place_of(request), changes=changes)\n",
        "",
        ("tests/controlplane/test_limited_keys.py", "-k", "a_key_of_topics"),
    ),
    Hole(
        "flooded-audit-log",
        "Whoever is refused fills the audit log of their organisation, and hides in it what others were refused.",
        "controlplane/core/audit_folds.py",
        "    if written.filter(whose=whose).count() >= most.of_actor:\n",
        "    if False and written.filter(whose=whose).count() >= most.of_actor:\n",
        ("tests/controlplane/audit/test_denials.py", "-k", "nobody_floods"),
    ),
    Hole(
        "changes-of-another-cluster",
        "Brokers of one cluster write what they like into the audit logs of another's tenants.",
        "controlplane/instances/kafka_changes.py",
        """    rows = Instance.objects.unscoped("brokers say what happens at everyone's").filter(cluster=cluster)\n""",
        """    rows = Instance.objects.unscoped("brokers say what happens at everyone's")\n""",
        ("tests/controlplane/audit/test_kafka_changes.py", "-k", "another_clusters_brokers"),
    ),
    Hole(
        "key-from-anywhere",
        "An API key that is for some addresses is good from any.",
        "controlplane/accounts/selectors.py",
        "    if not is_from(key, address):\n",
        "    if not is_from(key, address) and not address:\n",
        ("tests/controlplane/test_limited_keys.py", "-k", "from_its_addresses_alone"),
    ),
    Hole(
        "key-answer-of-another",
        "An API key that may not make a call is told what the call was answered under its Idempotency-Key.",
        "controlplane/idempotency/middleware.py",
        "        found[0].limits.admit(place.route, place.kwargs, changes=True)\n",
        "        _ = place\n",
        ("tests/controlplane/test_limited_keys.py", "-k", "idempotency_key"),
    ),
    Hole(
        "bound-key-invites",
        "An API key that is bound to addresses or to a time brings somebody in who is bound to neither.",
        "controlplane/accounts/scopes.py",
        'NOT_WHEN_BOUND = ("api-keys", "access-keys", "members", "invitations", "service-accounts", "roles", "sso")\n',
        'NOT_WHEN_BOUND = ("api-keys", "access-keys", "service-accounts", "roles", "sso")\n',
        ("tests/controlplane/test_members_api.py", "-k", "without_the_administrative_scope"),
    ),
    Hole(
        "service-account-makes-keys",
        "A service account makes keys, and brings people in.",
        "controlplane/accounts/scopes.py",
        "            if not self.is_of_person:\n",
        "            if False and not self.is_of_person:\n",
        ("tests/controlplane/test_service_accounts.py", "-k", "manages_no_keys"),
    ),
    Hole(
        "young-second-factor",
        "Whoever has an owner's password alone sets up a second factor, and is in where single sign-on is required.",
        "controlplane/sso/selectors.py",
        "    return since is not None and required is not None and since <= required\n",
        "    return since is not None and required is not None\n",
        ("tests/controlplane/sso/test_break_glass.py", "-k", "set_up_afterwards"),
    ),
    Hole(
        "invited-as-anybody",
        "Whoever has an account at an organisation's provider accepts invitations of others.",
        "controlplane/accounts/joining.py",
        "    if address is None or address != invitation.email:\n",
        "    if address is None:\n",
        ("tests/controlplane/sso/test_invited.py", "-k", "another_address"),
    ),
    Hole(
        "unverified-address",
        "A provider's word on an address that it has not verified accepts an invitation.",
        "controlplane/sso/oidc.py",
        '    if claims.get("email_verified") is not True or not isinstance(address, str) or not address.isascii():\n',
        "    if not isinstance(address, str) or not address.isascii():\n",
        ("tests/controlplane/sso/test_invited.py", "-k", "another_address"),
    ),
    Hole(
        "sso-key-operates",
        "A key that an organisation's provider has made acts in all organisations once its person operates the service.",
        "controlplane/accounts/selectors.py",
        "self.limits.is_none and not self.is_by_sso\n",
        "self.limits.is_none\n",
        ("tests/controlplane/sso/test_keys.py", "-k", "no_operators_key"),
    ),
    Hole(
        "sso-key-outlives",
        "Keys that were made by single sign-on go on when the provider is removed.",
        "controlplane/sso/services.py",
        "    row.delete()\n    accounts.sso_keys_revoke(organisation=organisation, actor=actor)\n",
        "    row.delete()\n",
        ("tests/controlplane/sso/test_keys.py", "-k", "ends_with_connection_and_provider"),
    ),
    Hole(
        "proofs-counted-together",
        "An organisation's provider uses up the tries of a person, who can then do nothing dangerous anywhere.",
        "controlplane/console/passkey_tries.py",
        "    if mark is not None:\n",
        "    if mark is not None and not mark:\n",
        ("tests/controlplane/sso/test_proofs.py", "-k", "shows_elsewhere"),
    ),
    Hole(
        "provider-guesses",
        "Whoever runs providers guesses a person's password, ten times in a quarter of an hour for each, without an end.",
        "controlplane/accounts/attempts.py",
        "    if found > MOST_BY_PROVIDERS:\n",
        "    if False and found > MOST_BY_PROVIDERS:\n",
        ("tests/controlplane/sso/test_proofs.py", "-k", "all_providers_together"),
    ),
    Hole(
        "joined-for-good",
        "Who joins by a provider where no mail is sent has an account that nobody can give a password.",
        "controlplane/accounts/joining.py",
        "    return invitation.is_mailed and outbox.is_on()\n",
        "    return is_proof(invitation)\n",
        ("tests/controlplane/sso/test_invited.py", "-k", "where_no_mail_is_sent"),
    ),
    Hole(
        "sign-in-meanwhile",
        "Whoever is on the way to the provider is signed in, though an owner has put it out of force meanwhile.",
        "controlplane/sso/services.py",
        "    if held is None or not held.is_on or _said(held) != _said(provider):\n",
        "    if held is None:\n",
        ("tests/controlplane/sso/test_meanwhile.py", "-k", "comes_back_after_that"),
    ),
    Hole(
        "left-to-whom-it-keeps-out",
        "An organisation is handed over to somebody whom its own single sign-on keeps out.",
        "controlplane/organisations/ownership.py",
        "    if rule is not None and steps_down and not owners_getting_in(rule):\n",
        "    if False and rule is not None and steps_down and not owners_getting_in(rule):\n",
        ("tests/controlplane/organisations/test_names_and_owners.py", "-k", "keeps_out"),
    ),
    Hole(
        "connected-by-password",
        "Whoever knows a member's password connects another account in place of theirs, where single sign-on is required.",
        "controlplane/sso/services.py",
        "    if provider.is_required and not is_in:\n",
        "    if False and provider.is_required and not is_in:\n",
        ("tests/controlplane/sso/test_signing_in.py", "-k", "the_first_stands"),
    ),
    Hole(
        "promoted-with-keys",
        "Keys that were made for a member act in all organisations once the person is made an operator.",
        "controlplane/accounts/services.py",
        "        if is_promoted:\n",
        "        if False and is_promoted:\n",
        ("tests/controlplane/test_access.py", "-k", "leaves_keys"),
    ),
    Hole(
        "sums-told",
        "Who is for one instance reads what the organisation may have, and has.",
        "controlplane/core/sums.py",
        "    return text if are_told() else without(text)\n",
        "    return text\n",
        ("tests/controlplane/test_sums_of_the_whole.py", "-k", "cap_forbids"),
    ),
    Hole(
        "bound-key-deletes",
        "An API key that is bound to addresses or to a time deletes the organisation.",
        "controlplane/accounts/scopes.py",
        "        if changes and (text in NOT_WHEN_BOUND_EITHER or any(",
        "        if changes and (any(",
        ("tests/controlplane/organisations/test_names_and_owners.py", "-k", "keys_that_may_do_less"),
    ),
    # --- the end of an organisation -----------------------------------------------------------------------------------
    Hole(
        "key-of-what-is-deleted",
        "API keys of an organisation that is marked for deletion go on working.",
        "controlplane/accounts/selectors.py",
        "    if not key.organisation.is_in_use:\n",
        "    if False and not key.organisation.is_in_use:\n",
        ("tests/controlplane/organisations/test_deletion.py", "-k", "every_key_is_refused"),
    ),
    Hole(
        "purchase-into-what-is-deleted",
        "Whoever was let in just before buys an instance in an organisation that is being deleted.",
        "controlplane/tenants/in_use.py",
        "    row = locked_any(organisation)\n    check(row)\n",
        "    row = locked_any(organisation)\n",
        ("tests/controlplane/organisations/test_deletion.py", "-k", "a_purchase_that_was_let_in"),
    ),
    Hole(
        "provider-of-what-is-deleted",
        "The provider of an organisation that is being deleted signs people in.",
        "controlplane/sso/selectors.py",
        "is_on=True, organisation__deletion_asked_at=None).first()\n",
        "is_on=True).first()\n",
        ("tests/controlplane/organisations/test_deletion.py", "-k", "its_provider_signs_nobody_in"),
    ),
    Hole(
        "owner-of-before-deletes",
        "Who was an owner when the request came deletes the organisation, though the role was taken meanwhile.",
        "controlplane/organisations/deletion.py",
        "    services.owner_lock(organisation=organisation, user=by, with_key=with_key)\n",
        "",
        ("tests/controlplane/organisations/test_deletion.py", "-k", "no_owner_any_more_deletes"),
    ),
    Hole(
        "owner-of-before-removes",
        "Who was an owner when the request came takes out whoever has just taken the role from them.",
        "controlplane/accounts/joining.py",
        "    accounts.owner_lock(organisation=organisation, user=by, with_key=with_key)\n    membership =",
        "    membership =",
        ("tests/controlplane/test_members_api.py", "-k", "takes_nobody_out"),
    ),
    Hole(
        "password-switches-factor-off",
        "Whoever sits at an open session and has guessed the password switches the second factor off.",
        "controlplane/accounts/identity/proving.py",
        "    if not by_factor and user.check_password(text):\n",
        "    if user.check_password(text):\n",
        ("tests/controlplane/identity/test_proof.py", "-k", "by_that_and_not_by_the_password"),
    ),
    Hole(
        "open-session-lets-others-in",
        "Whoever sits at a session that was left open lets the whole world connect.",
        "controlplane/core/whitelist.py",
        "        return now is not None and wanted is None\n    held",
        "        return now is not None and wanted is None\n    return False\n    held",
        ("tests/controlplane/console/test_dangerous_pages.py", "-k", "a_network_is_let_in"),
    ),
    Hole(
        "guesses-while-redis-is-away",
        "Whoever makes Redis slow guesses passwords and codes without a limit.",
        "controlplane/accounts/attempts.py",
        "    return HERE.one_more(key, now_s=now_s, window_s=window_s) if found is None else found\n",
        "    return found or 0\n",
        ("tests/controlplane/console/test_guessing_passwords.py", "-k", "keeps_whoever_guesses_waiting"),
    ),
    Hole(
        "pages-of-what-is-deleted",
        "Whoever is signed in goes on in an organisation that is being deleted.",
        "controlplane/console/page.py",
        "        if is_over and not is_end:\n",
        "        if False and is_over and not is_end:\n",
        ("tests/controlplane/console/test_organisation_pages.py", "-k", "every_page_of_it_leads"),
    ),
    Hole(
        "signature-of-what-is-deleted",
        "Access keys of an organisation that is being deleted sign as before.",
        "controlplane/accounts/selectors.py",
        "            organisation__deletion_asked_at__isnull=True,\n",
        "",
        ("tests/controlplane/organisations/test_deletion.py", "-k", "signatures_by_its_access_keys"),
    ),
    Hole(
        "anybody-takes-back",
        "Whoever is no owner, or none any more, takes a deletion back.",
        "controlplane/organisations/deletion.py",
        "    services.owner_check(organisation=row, user=by)\n",
        "",
        ("tests/controlplane/organisations/test_deletion.py", "-k", "an_owner_takes_it_back"),
    ),
    Hole(
        "invitation-outlives-deletion",
        "A link of an invitation leads into an organisation that was deleted, and taken back.",
        "controlplane/organisations/deletion.py",
        "    invitations_end_all(organisation=row, actor=by.email, clock=clock)\n",
        "",
        ("tests/controlplane/organisations/test_deletion.py", "-k", "invitations_of_before_have_ended"),
    ),
    Hole(
        "session-outlives-deletion",
        "A session of single sign-on goes on when the deletion is taken back.",
        "controlplane/organisations/deletion.py",
        "    sessions_end(row)  #",
        "    #",
        ("tests/controlplane/console/test_organisation_pages.py", "-k", "asks_for_nothing_meanwhile"),
    ),
    Hole(
        "deleted-with-something-in-the-way",
        "An organisation is deleted while an operation runs in it.",
        "controlplane/organisations/removal.py",
        "    if in_the_way:\n",
        "    if False and in_the_way:\n",
        ("tests/controlplane/organisations/test_removal.py", "-k", "in_the_way_meanwhile_is_waited_for"),
    ),
    # --- who is registered, and what happened -------------------------------------------------------------------------
    Hole(
        "sign-up-tells",
        "Signing up says whether an address has an account.",
        "controlplane/accounts/identity/signing_up.py",
        "    origin = current()\n    SignUp.objects.create(\n",
        '    origin = current()\n    if User.objects.filter(email=email).exists():\n        raise NotFound("taken")\n'
        "    SignUp.objects.create(\n",
        ("tests/controlplane/identity/test_signing_up.py", "-k", "the_answer_and_what_it_costs"),
    ),
    Hole(
        "invitation-tells",
        "Whoever was shown the link of an invitation learns by it whether the address has an account.",
        "controlplane/accounts/joining.py",
        "    return invitation.is_mailed or not outbox.is_on()\n",
        "    return invitation.is_mailed or outbox.is_on() or True\n",
        ("tests/controlplane/identity/test_signing_up.py", "-k", "was_shown_tells_them_nothing"),
    ),
    Hole(
        "audit-changed",
        "An entry of the audit trail is changed, and its chain is said to be whole.",
        "controlplane/core/audit_chain.py",
        "        if entry_hash(entry, number=number, previous_hash=last.hash) != entry.hash:\n",
        "        if entry_hash(entry, number=number, previous_hash=last.hash) == FIRST:\n",
        ("tests/controlplane/audit/test_chain.py", "-k", "what_was_changed_is_named"),
    ),
    # --- secrets ------------------------------------------------------------------------------------------------------
    Hole(
        "key-in-clear",
        "The private keys of routes stand in ZooKeeper for everybody to read.",
        "controlplane/certificates/keys.py",
        "    return sealed(key, secret=secret, purpose=route_key_purpose(instance_id, route), nonce=_nonce())\n",
        "    return key if secret and route_key_purpose(instance_id, route) else key\n",
        ("tests/controlplane/certificates/test_certificates.py", "-k", "gets_a_certificate"),
    ),
    Hole(
        "sealed-for-anybody",
        "A sealed text opens in every row of its column: who writes to the database gives one tenant's secret to another.",
        "controlplane/sealing/fields.py",
        "json.dumps([table, self.column, *(str(owner[name]) for name in self.owner)])",
        "json.dumps([table, self.column, *(name for name in self.owner)])",
        ("tests/controlplane/sealing/test_fields.py", "-k", "another_row"),
    ),
    Hole(
        "secret-in-clear",
        "A field that seals takes what nobody has sealed.",
        "controlplane/sealing/fields.py",
        "            if data and key_name(data) is None and not is_of_before(data):\n",
        "            if data is None:\n",
        ("tests/controlplane/sealing/test_fields.py", "-k", "no_text_in_clear"),
    ),
    Hole(
        "session-in-clear",
        "The database holds what cookies of sessions say: whoever reads it is signed in as anybody.",
        "controlplane/accounts/identity/engine.py",
        '    return hashlib.sha256(b"sluice session\\0" + key.encode(errors="replace")).hexdigest()[:KEY_DIGITS]\n',
        "    return key[:KEY_DIGITS]\n",
        ("tests/controlplane/identity/test_sessions.py", "-k", "signs_nobody_in"),
    ),
    Hole(
        "password-kept",
        "A password stands in the audit trail of the control plane.",
        "controlplane/access/users.py",
        '{"mechanisms": [mechanism.value for mechanism in wanted], "generated": password is None}',
        '{"mechanisms": [mechanism.value for mechanism in wanted], "generated": password is None, "given": text}',
        ("tests/controlplane/access/test_users_api.py",),
    ),
    Hole(
        "abort-unasked",
        "Whoever may log in aborts transactions of all others of the instance.",
        "dataplane/handlers/internal/txn_markers.py",
        "        self._refusal = self._ctx.cluster_refusal(Operation.ALTER)\n",
        "        self._refusal = ErrorCode.NONE\n",
        (EVERY_API, "-k", "WRITE_TXN_MARKERS"),
    ),
    Hole(
        "marker-epoch",
        "By a marker with a high epoch a coordinator is shut out, whose transactions then never end.",
        "dataplane/handlers/internal/txn_markers.py",
        "coordinator_epoch=min(marker.coordinator_epoch, known)",
        "coordinator_epoch=max(marker.coordinator_epoch, known)",
        ("tests/dataplane/handlers/test_write_txn_markers.py", "-k", "shuts_out_nobody"),
    ),
    Hole(
        "markers-unbounded",
        "A tenant fills disks with markers of producers that it invents.",
        "dataplane/handlers/internal/txn_markers.py",
        "        if marker.producer_id not in producers.transactions.open:\n            return ErrorCode.NONE\n",
        "",
        ("tests/dataplane/handlers/test_write_txn_markers.py", "-k", "leaves_no_trace"),
    ),
)
