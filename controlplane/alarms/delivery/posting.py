"""The one door to receivers' servers: a POST to an address that was judged, bounded in size and time.

The name is looked up here, once; each of its addresses is judged, and the connection goes to one that may be: nothing is
looked up again between judging and connecting, so a name that changes its mind changes nothing. Inside TLS the certificate
has to be trusted and the host's, by name. A redirect is an answer like any other that is not 2xx. No proxy is asked,
whatever the environment says. Of the answer the status and the headers are read, and nothing of the body.

All of it, the look-up included, has `WITHIN_S`: it is done on a thread of its own that is not waited for any longer, and whose
socket is shut down then, so that a server that sends a byte now and then holds nobody.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from typing import TYPE_CHECKING, Any

from django.conf import settings

from controlplane.alarms.delivery.targets import NOT_PUBLIC, networks_of
from controlplane.env import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from controlplane.alarms.delivery.targets import Networks, Target

    Resolve = Callable[..., list[Any]]

WITHIN_S = 5.0
LOOKED_UP_WITHIN_S = 2.0
MOST_ADDRESSES = 4


class PostProblem(Exception):  # noqa: N818  # it reads as what it is: the sentence that is shown
    """Why a message could not be handed over."""


def networks() -> Networks:
    """What the installation allows besides public addresses. Raises EnvironmentProblem."""
    try:
        return networks_of(settings.ENVIRONMENT.webhook_networks)
    except ValueError as error:
        raise EnvironmentProblem(f"SLUICE_WEBHOOK_NETWORKS: {error}") from error


def looked_up(host: str, port: int) -> list[str]:
    """The addresses of a name, as they are now. Raises OSError, UnicodeError."""
    return [str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def has_address(target: Target, *, within_s: float = LOOKED_UP_WITHIN_S) -> bool:
    """Whether the host has an address now that may be connected to. What is not found in time has none.

    Nothing is decided by it: each message looks again (`posted`). A name that nobody has and one that points inside are
    the same, so that nobody learns by it which names there are inside.
    """
    found: list[str] = []

    def look() -> None:
        try:
            found.extend(looked_up(target.host, target.port))
        except (OSError, UnicodeError):
            return

    thread = threading.Thread(target=look, name=f"looking up {target.host}", daemon=True)
    thread.start()
    thread.join(within_s)
    return any(target.allows(each, networks()) for each in list(found))


def posted(
    target: Target,
    body: bytes,
    headers: Mapping[str, str],
    *,
    within_s: float = WITHIN_S,
    resolve: Resolve | None = None,
) -> None:
    """The receiver has taken it. Raises PostProblem with a sentence."""
    post = _Post(target, body, headers, networks(), within_s, resolve or socket.getaddrinfo)
    thread = threading.Thread(target=post.run, name=f"webhook to {target.host}", daemon=True)
    thread.start()
    thread.join(within_s)
    if thread.is_alive():
        post.give_up()
        raise PostProblem(f"{target.host} has not answered within {within_s:g} s")
    if post.problem is not None:
        raise PostProblem(post.problem)


class _Post:
    """One of them. `run` is on another thread; `problem` is read when it has ended."""

    def __init__(
        self,
        target: Target,
        body: bytes,
        headers: Mapping[str, str],
        allowed: Networks,
        within_s: float,
        resolve: Resolve,
    ) -> None:
        self._target, self._body, self._headers, self._networks = target, body, headers, allowed
        self._within_s, self._resolve = within_s, resolve
        self._socket: socket.socket | None = None
        self._is_given_up = False
        self.problem: str | None = None

    def run(self) -> None:
        host = self._target.host
        try:
            self._send()
        except PostProblem as error:
            self.problem = str(error)
        except ssl.SSLCertVerificationError as error:
            self.problem = f"{host} shows a certificate that is not trusted: {error.verify_message}"
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.problem = f"{host} cannot be reached: {type(error).__name__}"

    def give_up(self) -> None:
        """Nobody waits any more."""
        self._is_given_up = True
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                return

    def _allowed(self) -> list[str]:
        """The addresses of the host that may be connected to, one at least."""
        host = self._target.host
        try:
            found = [str(each[4][0]) for each in self._resolve(host, self._target.port, type=socket.SOCK_STREAM)]
        except (OSError, UnicodeError):
            found = []
        allowed = [each for each in found if self._target.allows(each, self._networks)]
        if not allowed:
            raise PostProblem(NOT_PUBLIC.format(host=host))
        return allowed

    def _connected(self) -> socket.socket:
        """To the first that answers, of those that there is time for: whoever answers for the name may list thousands."""
        *others, last = self._allowed()[:MOST_ADDRESSES]
        for each in others:
            try:
                return socket.create_connection((each, self._target.port), self._within_s / 2)
            except OSError as error:
                if self._is_given_up:
                    raise PostProblem("nobody waits for it any more") from error
        return socket.create_connection((last, self._target.port), self._within_s)

    def _send(self) -> None:
        target = self._target
        found = self._socket = self._connected()
        try:
            if self._is_given_up:
                return
            if target.is_tls:
                found = self._socket = ssl.create_default_context().wrap_socket(found, server_hostname=target.host)
            connection = http.client.HTTPConnection(target.host, target.port)
            connection.default_port = http.client.HTTPS_PORT if target.is_tls else http.client.HTTP_PORT
            connection.sock = found
            headers = {"Content-Type": "application/json", "Connection": "close", "User-Agent": "sluice"}
            connection.request("POST", target.path, self._body, {**headers, **self._headers})
            with connection.getresponse() as answer:
                self._judge(answer.status)
        finally:
            self._socket.close()

    def _judge(self, status: int) -> None:
        if not 200 <= status < 300:
            is_elsewhere = 300 <= status < 400
            raise PostProblem(
                f"{self._target.host} answers {status}" + ("; redirects are not followed" if is_elsewhere else "")
            )
