"""What the TLS routes of an instance are served with, made of its certificates; and who a client is by its own.

Made beside the loop when certificates or what a route wants of TLS have changed. Connections that are open keep what they
began with. A route for which nothing can be made is not open, and the reason is told where it is applied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey

from dataplane.doors import Background, TlsServer
from dataplane.network.tls_context import server_context
from dataplane.tenancy.secured import NOTHING, Secured
from dataplane.tenancy.session import Session
from quota.contracts.certificates import CertificateSet
from quota.contracts.instance import ClientCertificates, InstanceSpec, Route
from quota.contracts.sealing import opened_by_any, route_key_purpose
from quota.core.principal_rules import NoRuleError, mapping_of, rules_problem
from quota.core.subject import subject_of


class Certificates:
    """Makes them. One of `secrets` has sealed each private key; `handshakes_per_s` may begin, of each instance."""

    def __init__(self, secrets: Sequence[str], background: Background, handshakes_per_s: Callable[[], int]) -> None:
        self._secrets, self._background, self._handshakes_per_s = tuple(secrets), background, handshakes_per_s

    async def secured(self, spec: InstanceSpec, data: bytes | None, before: Secured) -> Secured:
        """For the TLS routes of a specification, by the node of its certificates (None: there is none)."""
        routes = [route for route in spec.routes if route.wants_tls]
        if not routes:
            return NOTHING
        per_s = self._handshakes_per_s()
        made_of = (data, per_s, [(route.id, route.client_certificates, route.principal_mapping) for route in routes])
        if made_of == before.made_of:
            return before
        return await self._background.run(lambda: self._made(spec.id, routes, data, per_s, made_of))

    def _made(self, instance: str, routes: list[Route], data: bytes | None, per_s: int, made_of: object) -> Secured:
        servers: dict[str, TlsServer] = {}
        problems: dict[str, str] = {}
        try:
            certificates = CertificateSet.from_json(data)
        except ValueError as error:
            return Secured(made_of, {}, dict.fromkeys((route.id for route in routes), str(error)))
        for route in routes:
            try:
                servers[route.id] = self._server(instance, route, certificates, per_s)
            except ValueError as error:
                problems[route.id] = str(error)
            except Exception as error:  # noqa: BLE001 - whatever a library makes of it: other routes are served
                problems[route.id] = f"its certificate cannot be used: {type(error).__name__}: {error}"
        return Secured(made_of, servers, problems)

    def _server(self, instance: str, route: Route, certificates: CertificateSet, per_s: int) -> TlsServer:
        """Raises ValueError with why not."""
        shown = certificates.chain_of(route.id)
        if shown is None:
            raise ValueError("it has no certificate")
        wanted = ClientCertificates(route.client_certificates)
        client_ca = certificates.client_ca_of(route.id) if wanted is not ClientCertificates.NONE else ""
        if wanted is not ClientCertificates.NONE:
            problem = (
                "there is no CA for certificates of clients"
                if not client_ca
                else rules_problem(route.principal_mapping)
            )
            if problem is not None:
                raise ValueError(problem)
        key = opened_by_any(shown.key, secrets=self._secrets, purpose=route_key_purpose(instance, shown.route)).decode()
        context = server_context(shown.chain, key, client_ca, requires_client=wanted is ClientCertificates.REQUIRED)
        # Measured: with P-256 a quarter of a millisecond in two steps. Larger keys and chains of clients take up to 5 ms.
        is_quick = not client_ca and _is_p256(shown.chain)
        names = bool(client_ca) and not route.wants_sasl
        looks_at = partial(_named, route.principal_mapping) if names else None
        return TlsServer(context, per_s, None if is_quick else self._background.run, looks_at=looks_at)


def identify(session: Session, route: Route, certificate: bytes | None) -> str | None:
    """Have a session be who its client's certificate says; why it may not stay, or None.

    Where clients log in by SASL that says who they are, and a certificate only that they may try.
    """
    if certificate is None or route.wants_sasl:
        return None
    name, problem = _named(route.principal_mapping, certificate)
    if problem is None:
        session.principal = f"User:{name}"
    return problem


@lru_cache(maxsize=64)
def _named(rules: tuple[str, ...], certificate: bytes) -> tuple[str, str | None]:
    """What a client is called by its certificate, and why it is nobody, or None.

    A tenant's rules can take tens of milliseconds. They are asked beside the loop when the handshake is over
    (`TlsServer.looks_at`), and what was found is remembered until `identify` asks.
    """
    try:
        return mapping_of(rules).name(subject_of(certificate)), None
    except NoRuleError:
        return "", "no rule makes a principal of the client's certificate"
    except ValueError:
        return "", "the subject of the client's certificate is not legible"


def _is_p256(chain: str) -> bool:
    key = x509.load_pem_x509_certificate(chain.encode()).public_key()
    return isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1)
