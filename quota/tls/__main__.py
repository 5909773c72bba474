"""``python -m quota.tls FOLDER …``: the certificates of a cluster's own processes, for who has no PKI of his own.

authority NAME                   make the authority (once)
issue IDENTITY [--host HOST]…    a certificate of broker-1, master-1, controlplane, metering, operator, monitoring
renew [--all]                    those that end soon; after `replace`, all of them, by the new authority
replace NAME                     another authority: from now on it is believed beside the old one
forget                           the old authority is not believed any more

What to do with the files is in docs/runbooks/certificates-within-the-cluster.md. Exit status 1 with a sentence where it cannot.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from quota.contracts.identity import identity_of
from quota.tls.authority import ISSUED_FOR
from quota.tls.store import Store, StoreError


def main(arguments: list[str]) -> int:
    """Does it, and says what it has done; the exit status."""
    options = _parser().parse_args(arguments)
    store = Store(options.folder, lambda: datetime.now(UTC))
    try:
        for line in _done(store, options):
            sys.stdout.write(line + "\n")
    except (StoreError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _done(store: Store, options: argparse.Namespace) -> list[str]:
    match options.command:
        case "authority":
            made = store.ensure_authority(options.name)
            return [f"the authority {options.name} is made" if made else "there is an authority already"]
        case "issue":
            identity = identity_of(options.identity)
            if identity is None:
                raise StoreError(f"{options.identity} is no identity of a cluster")
            return [str(store.issue(identity, options.host, timedelta(days=options.days)))]
        case "renew":
            return [f"{identity.name} is renewed" for identity in store.renew(everything=options.all)]
        case "replace":
            store.replace(options.name)
            return ["copy each ca.crt to its process; then renew"]
        case _:
            store.forget()
            return ["copy each ca.crt to its process"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m quota.tls", description="Certificates within a cluster.")
    parser.add_argument("folder", type=Path)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("authority").add_argument("name")
    issue = commands.add_parser("issue")
    issue.add_argument("identity")
    issue.add_argument("--host", action="append", default=[], help="a name or an address where it is found")
    issue.add_argument("--days", type=int, default=ISSUED_FOR.days)
    commands.add_parser("renew").add_argument("--all", action="store_true")
    commands.add_parser("replace").add_argument("name")
    commands.add_parser("forget")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
