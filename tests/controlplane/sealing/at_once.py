"""A control plane of its own, on a real database, whose keys are replaced while processes write and read. Run by test_at_once.py.

Two rotate at once; two write rows, one of them with the old key at first, as a process that has read the file a moment ago; two
read. Prints what they met, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from tests.support.django_process import set_up

ROWS, ROUNDS = 120, 40


def main(directory: Path, database_url: str) -> None:
    from controlplane.sealing.keyring import Key, Keyring, drawn

    old, new = drawn(), drawn()
    file = directory / "encryption.keys"
    file.write_text(old)
    set_up(str(directory), database_url, SLUICE_ENCRYPTION_KEYS_FILE=str(file))
    from django.db import connection

    from controlplane.core.clock import SYSTEM_CLOCK
    from controlplane.mail.models import Mail
    from controlplane.mail.outbox import mail_write
    from controlplane.sealing import installed, rotation
    from controlplane.sealing.fields import field_of

    field = field_of(Mail, "sealed")
    names = sorted(
        mail_write(address="ann@example.com", subject="s", body="b", at=SYSTEM_CLOCK.now()).pk for _ in range(ROWS)
    )
    (column,) = [each for each in rotation.columns() if each.label == "mail.Mail.sealed"]
    file.write_text(f"{new}\n{old}\n")
    written: dict[str, bytes] = {}
    problems: list[str] = []

    def rotate() -> None:
        for _ in range(3):
            problems.extend(["lost"] * rotation.rotate(column, installed.keyring(), size=7).lost)

    def write(mine: list[str], late: Keyring | None) -> None:
        for round_ in range(ROUNDS):
            for name in mine:
                text = f"{name} {round_}".encode()
                ring = late if late is not None and round_ < ROUNDS // 2 else installed.keyring()
                Mail.objects.filter(pk=name).update(sealed=field.sealed(text, {"id": name}, ring))
                written[name] = text

    def read() -> None:
        for _ in range(ROUNDS):
            for row in Mail.objects.all():
                field.opened(row)

    def at_once(*calls) -> None:
        def guarded(call) -> None:
            try:
                call()
            except Exception as error:  # noqa: BLE001  # the test shall see it
                problems.append(f"{type(error).__name__}: {error}")
            finally:
                connection.close()

        threads = [threading.Thread(target=guarded, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    at_once(
        rotate, rotate, read, read,
        lambda: write(names[:5], Keyring.parse(old)), lambda: write(names[5:10], None),
    )  # fmt: skip
    rotation.rotate(column, installed.keyring())
    file.write_text(new)
    found = rotation.look(column, installed.keyring())
    rows = {row.pk: field.opened(row) for row in Mail.objects.all()}
    print(
        json.dumps(
            {
                "problems": problems,
                "lost": found.lost,
                "by": {"new": found.keys[Key.of(new).name.hex()], "all": sum(found.keys.values())},
                "overwritten": [name for name, text in written.items() if rows[name] != text],
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
