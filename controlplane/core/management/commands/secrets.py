"""`manage.py secrets draw|check|rotate`: the keys that seal secrets in the database (docs/runbooks/encryption-keys.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.sealing import installed, keyring, rotation
from controlplane.sealing.keyring import KeysProblem

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from controlplane.sealing.keyring import Keyring
    from controlplane.sealing.rotation import Found, Rotated


class Command(BaseCommand):
    """Never prints a secret, nor a key but the new one that was asked for."""

    help = "The keys that seal secrets in the database: draw a new one, see what each opens, seal everything with the first."
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django's own shape; the first key is drawn where there is none

    def add_arguments(self, parser: ArgumentParser) -> None:
        """One of three words."""
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("draw", help="print a new key, a line for the file of keys")
        actions.add_parser("check", help="open every secret and count by key; status 1 if one cannot be opened")
        rotate = actions.add_parser("rotate", help="seal with the first key what another one has sealed")
        rotate.add_argument("--portion", type=int, default=rotation.PORTION, help="rows that are read at once")

    def handle(self, *, action: str, portion: int = rotation.PORTION, **_options: Any) -> None:
        """Raises CommandError where there are no keys, or something cannot be opened."""
        if action == "draw":
            self.stdout.write(keyring.drawn())
            return
        try:
            ring = installed.keyring()
        except KeysProblem as problem:
            raise CommandError(str(problem)) from None
        if action == "check":
            self._check(ring)
        elif portion < 1:
            raise CommandError("--portion: at least 1")
        else:
            self._rotate(ring, portion)

    def _check(self, ring: Keyring) -> None:
        found = [rotation.look(column, ring) for column in rotation.columns()]
        for each in found:
            self._say_found(each)
        for number, key in enumerate(ring.keys):
            name = key.name.hex()
            rows = sum(each.keys[name] for each in found)
            use = "seals" if number == 0 else "opens only" if rows else "opens nothing: it can be taken out of the file"
            self.stdout.write(f"key {name}: {rows} secrets, {use}")
        lost = sum(each.lost_count for each in found)
        if lost:
            raise CommandError(f"{lost} secrets cannot be opened with any key of the file")

    def _say_found(self, found: Found) -> None:
        by_key = ", ".join(f"{count} by {name}" for name, count in sorted(found.keys.items())) or "none"
        self.stdout.write(f"{found.label}: {by_key}")
        for line in found.lost:
            self.stderr.write(f"  {line}")
        if found.lost_count > len(found.lost):
            self.stderr.write(f"  and {found.lost_count - len(found.lost)} others")

    def _rotate(self, ring: Keyring, portion: int) -> None:
        lost = 0
        for column in rotation.columns():
            done = rotation.rotate(column, ring, size=portion, tell=self._say_progress)
            self.stdout.write(
                f"{done.label}: {done.sealed} sealed with key {ring.keys[0].name.hex()}, {done.seen} in all"
            )
            lost += done.lost
        if lost:
            raise CommandError(f"{lost} secrets cannot be opened with any key of the file: `manage.py secrets check`")

    def _say_progress(self, progress: Rotated) -> None:
        self.stdout.write(f"{progress.label}: {progress.seen} looked at, {progress.sealed} sealed")
