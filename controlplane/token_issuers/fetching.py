"""The one door to issuers' servers: a GET of what is allowed, or the POST of a form, bounded in size and time.

The name is looked up here, each of its addresses is judged, and the connection goes to one that was: nothing is looked up again
between judging and connecting. A redirect is an answer like any other that is not 200. No proxy is asked, whatever the
environment says. Certificates are verified by the system's authorities (`SSL_CERT_FILE` names others) for the name in the URL.

All of it, the look-up included, has `WITHIN_S`: it is done on a thread of its own that is not waited for any longer, and whose
socket is shut down then, so that a server that sends a byte now and then holds nobody.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from typing import TYPE_CHECKING

from controlplane.token_issuers.keys import KeySetProblem

if TYPE_CHECKING:
    from controlplane.token_issuers.allowed import KeyAddress

WITHIN_S = 5.0
MOST_BYTES = 64 * 2**10
MOST_ADDRESSES = 4


def fetched(
    address: KeyAddress, *, within_s: float = WITHIN_S, form: bytes | None = None, authorization: str = ""
) -> bytes:
    """What is published there; what is answered to a `form`, which is posted. Raises KeySetProblem with a sentence."""
    fetch = _Fetch(address, within_s, form, authorization)
    thread = threading.Thread(target=fetch.run, name=f"keys of {address.host}", daemon=True)
    thread.start()
    thread.join(within_s)
    if thread.is_alive():
        fetch.give_up()
        raise KeySetProblem(f"{address.host} has not answered within {within_s:g} s")
    if fetch.problem is not None:
        raise KeySetProblem(fetch.problem)
    return fetch.body


class _Fetch:
    """One of them. `run` is on another thread; `body` and `problem` are read when it has ended."""

    def __init__(self, address: KeyAddress, within_s: float, form: bytes | None, authorization: str) -> None:
        self._address, self._within_s, self._form = address, within_s, form
        self._headers = {"Accept": "application/json", "Connection": "close", "User-Agent": "sluice"}
        if form is not None:
            self._headers["Content-Type"] = "application/x-www-form-urlencoded"
        if authorization:
            self._headers["Authorization"] = authorization
        self._socket: socket.socket | None = None
        self._is_given_up = False
        self.body = b""
        self.problem: str | None = None

    def run(self) -> None:
        try:
            self._ask()
        except KeySetProblem as error:
            self.problem = str(error)
        except ssl.SSLCertVerificationError as error:
            self.problem = f"{self._address.host} shows a certificate that is not trusted: {error.verify_message}"
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.problem = f"{self._address.host} cannot be asked: {type(error).__name__}"

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
        host, port = self._address.host, self._address.port
        try:
            found = [str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        except OSError as error:
            raise KeySetProblem(f"there is no host {host}") from error
        allowed = [each for each in found if self._address.place.allows(each)]
        if not allowed:
            raise KeySetProblem(f"{host} has an address from which keys may not be fetched")
        return allowed

    def _connected(self) -> socket.socket:
        """To the first that answers, of those that there is time for: whoever answers for the name may list thousands."""
        *others, last = self._allowed()[:MOST_ADDRESSES]
        for each in others:
            try:
                return socket.create_connection((each, self._address.port), self._within_s / 2)
            except OSError as error:
                if self._is_given_up:
                    raise KeySetProblem("nobody waits for it any more") from error
        return socket.create_connection((last, self._address.port), self._within_s)

    def _ask(self) -> None:
        address = self._address
        plain = self._socket = self._connected()
        try:
            if self._is_given_up:
                return
            found = plain
            if address.place.scheme == "https":
                found = self._socket = ssl.create_default_context().wrap_socket(plain, server_hostname=address.host)
            connection = http.client.HTTPConnection(address.host, address.port)
            connection.default_port, connection.sock = address.port, found  # the header Host without a port
            method = "GET" if self._form is None else "POST"
            connection.request(method, address.target, body=self._form, headers=self._headers)
            with connection.getresponse() as answer:
                self._read(answer)
        finally:
            self._socket.close()

    def _read(self, answer: http.client.HTTPResponse) -> None:
        host = self._address.host
        if answer.status != http.HTTPStatus.OK:
            is_elsewhere = 300 <= answer.status < 400
            raise KeySetProblem(
                f"{host} answers {answer.status}" + ("; redirects are not followed" if is_elsewhere else "")
            )
        self.body = answer.read(MOST_BYTES + 1)
        if len(self.body) > MOST_BYTES:
            raise KeySetProblem(f"the key set of {host} has more than {MOST_BYTES} bytes")
