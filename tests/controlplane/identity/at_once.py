"""A control plane of its own, on a real database, in which many workers answer one who signs up, and one link is used by many.

Run by test_at_once.py. Prints how many mails, accounts and organisations there are, as JSON.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path

from tests.support.django_process import set_up

WORKERS = 8
EMAIL, PASSWORD = "dora@example.com", "water over the wheel"


def main(directory: Path, database_url: str) -> None:
    set_up(
        str(directory),
        database_url,
        SLUICE_ZOOKEEPER_ACL="off",  # there is none
        SLUICE_SMTP="127.0.0.1:9",  # nothing is sent here
        SLUICE_EMAIL_FROM="service@sluice.example.com",
        SLUICE_CONSOLE_URL="https://sluice.example.com",
    )
    from django.db import connection

    from controlplane.accounts import joining
    from controlplane.accounts.identity import links, signing_up
    from controlplane.accounts.models import User
    from controlplane.core.errors import SluiceError
    from controlplane.tenants.models import Organisation

    written: list[str] = []
    write = links.letter_write

    def kept(*, letter, **about) -> None:
        written.append(letter.body)
        write(letter=letter, **about)

    links.letter_write = kept

    def at_once(call) -> list[str]:
        """What each came to: empty where it went well."""
        start, told = threading.Barrier(WORKERS), []

        def work(number: int) -> None:
            start.wait()
            try:
                call(number)
                told.append("")
            except SluiceError as error:
                told.append(error.code)
            connection.close()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(told)

    def confirm(number: int) -> None:
        joining.sign_up_confirm(token=token, password=PASSWORD, name="", organisation_name=f"Mill {number}")

    signing_up.ask(email=EMAIL, name="", organisation_name="Mill")
    answered = at_once(lambda _number: signing_up.answer())
    (body,) = written
    token = re.search(r"/sign-up/(\S+)", body)[1]
    used = at_once(confirm)
    print(
        json.dumps(
            {
                "answered": answered,
                "mails": len(written),
                "used": used,
                "accounts": User.objects.count(),
                "organisations": Organisation.objects.count(),
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
