"""Instance specs in ZooKeeper, written by the contract as the control plane writes them.

specs = Specs(client)
tenant = specs.create([1, 2, 3], whitelist=("127.0.0.0/8",))      # ports drawn, listeners open when this returns
specs.change(tenant, topic_whitelists={"orders": ()})              # the next generation, applied by every live broker
"""

from __future__ import annotations

import itertools
import random
import string
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kazoo.exceptions import NoNodeError

from quota.contracts.apart import (
    acls_path,
    beside_paths,
    certificates_path,
    nodes_of,
    spec_path,
    token_issuers_path,
    users_path,
)
from quota.contracts.applied import Applied
from quota.contracts.change import Change
from quota.contracts.instance import (
    ACLS_PATH,
    APPLIED_PATH,
    CHANGES_PATH,
    USERS_PATH,
    Endpoint,
    InstanceSpec,
    InstanceState,
    Limits,
    Route,
)
from quota.contracts.proposals import proposal_path
from tests.support.ports import free_port
from tests.support.processes import HOST
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kazoo.client import KazooClient

    from quota.contracts.acls import AclSet
    from quota.contracts.certificates import CertificateSet
    from quota.contracts.token_issuers import TokenIssuerSet
    from quota.contracts.users import UserSet

UNLIMITED = Limits(None, None, None, None)
_system = random.SystemRandom()  # pytest-randomly gives every worker the same seed; instances must differ


@dataclass
class Tenant:
    """An instance as a test knows it; `spec` is what was written last."""

    spec: InstanceSpec

    @property
    def id(self) -> str:
        return self.spec.id

    @property
    def key(self) -> str:
        return self.spec.id.removeprefix("ins-")

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.addresses.values())

    @property
    def addresses(self) -> dict[int, tuple[str, int]]:
        """By broker."""
        return {broker: endpoint.advertised for broker, endpoint in self.spec.routes[0].endpoints.items()}


class Specs:
    """Writes, and waits until brokers have applied."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client
        self._sequence = itertools.count(time.time_ns())

    def create(
        self,
        brokers: Sequence[int],
        *,
        limits: Limits = UNLIMITED,
        route: Mapping[str, Any] | None = None,
        users: UserSet | None = None,
        token_issuers: TokenIssuerSet | None = None,
        acls: AclSet | None = None,
        certificates: Callable[[str], CertificateSet] | None = None,
        **members: Any,
    ) -> Tenant:
        """A running instance of everybody on loopback, unless said otherwise; returns when its listeners are open.

        `route`: members of its one route; `users`, `token_issuers`: who may log in there; `acls`: what they may;
        `certificates`: of the instance of this id.
        """
        spec = InstanceSpec(
            id="ins-" + "".join(_system.choices(string.ascii_lowercase + string.digits, k=8)),
            generation=1,
            state=InstanceState.RUNNING,
            limits=limits,
            whitelist=("127.0.0.0/8",),
            routes=(Route("default", {broker: _endpoint() for broker in brokers}, **(route or {})),),
        )
        tenant = Tenant(replace(spec, **members))
        if users is not None:
            self._put_users(tenant, users)
        if token_issuers is not None:
            self._put(token_issuers_path(tenant.id), token_issuers.to_json())
        if acls is not None:
            self._put(acls_path(tenant.id), acls.to_json())
        if certificates is not None:
            self._put_certificates(tenant, certificates(tenant.id))
        self._write(tenant)
        wait_for(lambda: self.is_applied(tenant), 15, f"{tenant.id} to be served")
        return tenant

    def change(self, tenant: Tenant, **members: Any) -> float:
        """Write the next generation; the seconds until all live brokers say that they have it."""
        tenant.spec = replace(tenant.spec, generation=tenant.spec.generation + 1, **members)
        self._write(tenant)
        return wait_for(lambda: self.is_applied(tenant), 15, f"generation {tenant.spec.generation} of {tenant.id}")

    def set_users(self, tenant: Tenant, users: UserSet) -> None:
        """Who may log in from now on: in force within two seconds. The version has to be a later one."""
        self._put_users(tenant, users)
        self._announce(tenant.id)

    def set_token_issuers(self, tenant: Tenant, token_issuers: TokenIssuerSet) -> None:
        """Whose tokens let in from now on: in force within two seconds. The version has to be a later one."""
        self._put(token_issuers_path(tenant.id), token_issuers.to_json())
        self._announce(tenant.id)

    def set_certificates(self, tenant: Tenant, certificates: CertificateSet) -> None:
        """What its routes show from now on: in force for new connections within two seconds. The version has to be later."""
        self._put_certificates(tenant, certificates)
        self._announce(tenant.id)

    def _put_certificates(self, tenant: Tenant, certificates: CertificateSet) -> None:
        self._put(certificates_path(tenant.id), certificates.to_json())

    def _put_users(self, tenant: Tenant, users: UserSet) -> None:
        self._put(users_path(tenant.id), users.to_json())

    def _put(self, path: str, data: bytes) -> None:
        self._client.ensure_path(path)
        self._client.set(path, data)

    def remove(self, tenant: Tenant) -> None:
        """Close its listeners; topics stay."""
        for path in (spec_path(tenant.id), *beside_paths(tenant.id), proposal_path(tenant.id)):
            if self._client.exists(path):
                self._client.delete(path, recursive=True)
        self._announce(tenant.id)

    def is_applied(self, tenant: Tenant) -> bool:
        """Whether every live broker serves what was written last."""
        found = [self._applied_by(broker) for broker in self._client.get_children("/brokers/ids")]
        if not found:
            return False
        for applied in found:
            entry = applied.instances.get(tenant.id) if applied is not None else None
            if entry is None or entry.generation < tenant.spec.generation:
                return False
            assert entry.problem is None, entry.problem
        return True

    def _applied_by(self, broker: str) -> Applied | None:
        try:
            return Applied.from_json(self._client.get(f"{APPLIED_PATH}/{broker}")[0])
        except NoNodeError:
            return None

    def _write(self, tenant: Tenant) -> None:
        nodes = nodes_of(tenant.spec)
        for path in (*nodes, ACLS_PATH, USERS_PATH):
            self._client.ensure_path(path)
        transaction = self._client.transaction()
        for path, data in nodes.items():
            transaction.set_data(path, data)
        assert all(not isinstance(result, Exception) for result in transaction.commit())
        self._announce(tenant.id)

    def _announce(self, instance: str) -> None:
        self._client.create(f"{CHANGES_PATH}/{next(self._sequence):020d}", Change(instance).to_json(), makepath=True)


def _endpoint() -> Endpoint:
    address = (HOST, free_port())
    return Endpoint(address, address)
