"""An operation until it has ended: asked for now and then, each step in the log as it begins (TF_LOG=info shows it)."""

from __future__ import annotations

import json
import re
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from controlplane.cli import operations as ops
from controlplane.terraform.diagnostics import Diagnostic, Failed, Unfinished

if TYPE_CHECKING:
    from controlplane.terraform.rest import Client

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 2.0
RUNNING, SUCCEEDED, DONE = "running", "succeeded", ("succeeded", "done")
DEFAULT_TIMEOUT = "30m"
_SPAN = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


def span_s(text: str) -> int | None:
    """Seconds of ``1h30m``, ``45s``; None: it is no span."""
    found = _SPAN.fullmatch(text)
    if not text or found is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds or None


def operation_awaited(client: Client, operation_id: str, *, timeout_s: float) -> dict[str, Any]:
    """The operation as it ended. Raises Failed, Unfinished, and what asking for it raises."""
    began, pause_s = time.monotonic(), FIRST_PAUSE_S
    said: str | None = None
    while True:
        found: dict[str, Any] = client.get(ops.OPERATION, operation_id=operation_id)
        step = _step(found)
        if step != said:
            log("info", f"{found['kind']} of {found['target']}: {found['progress']} %{step}", operation=operation_id)
            said = step
        if found["state"] == SUCCEEDED:
            return found
        if found["state"] != RUNNING:
            reason = f"{found.get('error') or 'no reason is known'} ({operation_id}, {found['kind']}{step})"
            raise Failed(Diagnostic("The operation failed", reason))
        if time.monotonic() - began > timeout_s:
            detail = f"{operation_id} ({found['kind']}) is at {found['progress']} %{step} after {timeout_s:g} s, and goes on."
            raise Unfinished(
                Diagnostic("The operation is still running", f"{detail} `timeouts` says how long to wait.")
            )
        try:
            client.waits.pause(pause_s)
        except Unfinished as error:
            detail = f"{operation_id} ({found['kind']}) goes on: sluice operation wait {operation_id}"
            raise Unfinished(Diagnostic("Interrupted", detail)) from error
        pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)


def log(level: str, message: str, **members: str) -> None:
    """A line that Terraform takes into its own log, as hclog writes it. Standard output is the handshake's alone."""
    moment = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    line = {"@level": level, "@message": message, "@timestamp": moment, "@module": "sluice", **members}
    sys.stderr.write(json.dumps(line) + "\n")
    sys.stderr.flush()


def _step(operation: dict[str, Any]) -> str:
    """The step that it is at, with what it says of itself."""
    present = next((step for step in operation["steps"] if step["state"] not in DONE), None)
    if present is None:
        return ""
    return f", {present['name']}: {present['note']}" if present["note"] else f", {present['name']}"
