"""A client outside the whitelist is refused, on new connections and on open ones, within two seconds of the change."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

from tests.demo.stack import DemoError, Stack, answers, first_address, wait_for

OUTSIDE = "127.0.0.99"
EVERYBODY_HERE = ["127.0.0.0/8"]
ONLY_US = ["127.0.0.1/32"]
WITHIN_S = 2.0


def run(stack: Stack, say: Callable[[str], None]) -> dict[str, Any]:
    """Refused, let in after a change, and cut off again while connected."""
    tenant = stack.tenants[0]
    address = first_address(tenant.bootstrap)
    tenant.call("PUT", "/whitelist", {"cidrs": ONLY_US})
    wait_for(lambda: not answers(address, OUTSIDE), WITHIN_S + 3, "the whitelist to hold")
    if not answers(address, "127.0.0.1"):
        raise DemoError("a client inside the whitelist is refused")
    say(f"{OUTSIDE} is refused, 127.0.0.1 is served")
    tenant.call("PUT", "/whitelist", {"cidrs": EVERYBODY_HERE})
    opened = wait_for(lambda: answers(address, OUTSIDE), WITHIN_S + 3, "the wider whitelist")
    with socket.create_connection(address, timeout=5, source_address=(OUTSIDE, 0)) as sock:
        if not answers(address, OUTSIDE, sock):
            raise DemoError("a connection inside the wider whitelist is not served")
        began = time.monotonic()
        tenant.call("PUT", "/whitelist", {"cidrs": ONLY_US})
        sock.settimeout(WITHIN_S + 3)
        sock.recv(4096)  # the rest of the answer
        while sock.recv(4096):
            pass
        closed = time.monotonic() - began
    say(f"let in {opened:.2f} s after the whitelist was widened; open connection closed {closed:.2f} s after narrowing")
    if opened > WITHIN_S or closed > WITHIN_S:
        raise DemoError(f"a whitelist change took {max(opened, closed):.2f} s")
    return {"refused": OUTSIDE, "let_in_after_s": round(opened, 3), "open_connection_closed_after_s": round(closed, 3)}
