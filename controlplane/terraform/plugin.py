"""go-plugin, as far as Terraform needs it: the handshake, TLS, the gRPC server, and its end.

Terraform starts this process with a cookie in its environment and reads one line of standard output::

    1|6|unix|/tmp/sluice-terraform-…/socket|grpc|<certificate of the server>

The socket lies in a folder that nobody else may enter, and the certificate is made for this process and kept in memory. Terraform
shows a certificate as well; it is of a curve that gRPC's TLS for Python does not verify (P-521), so it is not asked for, and the
folder is what keeps others away.
"""

from __future__ import annotations

import base64
import os
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from google.protobuf import message_factory

from controlplane.terraform.protocol.messages import go, tf
from controlplane.terraform.rest import Waits
from controlplane.terraform.service import Provider

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

COOKIE, COOKIE_VALUE = "TF_PLUGIN_MAGIC_COOKIE", "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2"
CLIENT_CERTIFICATE = "PLUGIN_CLIENT_CERT"
PROTOCOL, VERSION = 1, 6
THREADS = 128
"""Each apply waits in one: as many as anybody's -parallelism."""
UNLIMITED = -1
FEW_S = 5
NOT_STARTED_BY_TERRAFORM = (
    "This program is a plugin of Terraform and OpenTofu, which start it themselves.\n"
    "`python -m controlplane.terraform install` puts it where they look for it."
)


@dataclass(frozen=True, slots=True)
class Certificate:
    """Of this process: PEM of key and certificate, and DER for the handshake."""

    key: bytes
    chain: bytes
    der: bytes


def serve(environment: Mapping[str, str] = os.environ) -> int:
    """Be the plugin until Terraform has enough of it; the exit status."""
    if environment.get(COOKIE) != COOKIE_VALUE:
        sys.stderr.write(NOT_STARTED_BY_TERRAFORM + "\n")
        return 1
    waits, over = Waits(), threading.Event()
    options = [("grpc.max_receive_message_length", UNLIMITED), ("grpc.max_send_message_length", UNLIMITED)]
    server = grpc.server(ThreadPoolExecutor(THREADS), options=options)
    server.add_generic_rpc_handlers(handlers(Provider(waits), over))
    with tempfile.TemporaryDirectory(prefix="sluice-terraform-") as folder:
        socket = Path(folder) / "socket"
        certificate = _certificate() if environment.get(CLIENT_CERTIFICATE) else None
        _bind(server, f"unix://{socket}", certificate)
        server.start()
        shown = "" if certificate is None else base64.b64encode(certificate.der).decode().rstrip("=")
        sys.stdout.write(f"{PROTOCOL}|{VERSION}|unix|{socket}|grpc|{shown}\n")
        sys.stdout.flush()
        _wait(over)
        waits.stopped.set()
        server.stop(grace=1).wait(FEW_S)
    return 0


def handlers(provider: Provider, over: threading.Event) -> list[Any]:
    """The services of this process. `over` is set when Terraform says that it is."""

    def shutdown(_request: Any, _context: Any) -> Any:
        over.set()
        return go.Empty()

    def output(_request: Any, context: Any) -> Any:
        """Nothing is printed: the stream is open, and empty, as long as the process."""
        while context.is_active() and not over.wait(1):
            pass
        yield from ()

    messages = tf.DESCRIPTOR.services_by_name["Provider"].methods
    return [
        grpc.method_handlers_generic_handler(
            "tfplugin6.Provider", {method.name: _unary(getattr(provider, method.name), method) for method in messages}
        ),
        grpc.method_handlers_generic_handler(
            "plugin.GRPCController",
            {
                "Shutdown": grpc.unary_unary_rpc_method_handler(
                    shutdown, go.Empty.FromString, go.Empty.SerializeToString
                )
            },
        ),
        grpc.method_handlers_generic_handler(
            "plugin.GRPCStdio",
            {
                "StreamStdio": grpc.unary_stream_rpc_method_handler(
                    output, go.Empty.FromString, go.StdioData.SerializeToString
                )
            },
        ),
    ]


def _unary(call: Callable[[Any, Any], None], method: Any) -> Any:
    request, answer = map(message_factory.GetMessageClass, (method.input_type, method.output_type))

    def answered(message: Any, _context: Any) -> Any:
        response = answer()
        call(message, response)
        return response

    return grpc.unary_unary_rpc_method_handler(answered, request.FromString, answer.SerializeToString)


def _bind(server: Any, address: str, certificate: Certificate | None) -> None:
    if certificate is None:
        server.add_insecure_port(address)
        return
    pairs = [(certificate.key, certificate.chain)]
    server.add_secure_port(address, grpc.ssl_server_credentials(pairs))


def _wait(over: threading.Event) -> None:
    """Until Terraform says so, or is there no more: a plugin that outlives it would never end."""
    parent = os.getppid()
    while not over.wait(1):
        if os.getppid() != parent:
            return


def _certificate() -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    found = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=7))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, der = serialization.Encoding.PEM, serialization.Encoding.DER
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Certificate(secret, found.public_bytes(pem), found.public_bytes(der))
