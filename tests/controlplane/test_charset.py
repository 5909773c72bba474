"""What a Content-Type says of the charset changes nothing of how an address is read, and nothing in the world.

Asked of the real WSGI application: the test clients of Django and REST framework go past it.
"""

from __future__ import annotations

import asyncio

import pytest
from werkzeug.test import Client

from controlplane.core.charset import asgi_in_utf8, without_charset
from controlplane.instances.models import Instance
from controlplane.wsgi import application

URL = "/api/v1/instances"
OF_TEXT = ["utf-16", "utf-16-le", "cp037", "utf-7", "latin-1"]
OF_NO_TEXT = ["hex", "base64", "zlib", "bz2", "rot13", "uu", "punycode", "undefined", "no-such-codec", '"', ""]
SAID = [f"application/json; charset={name}" for name in OF_TEXT + OF_NO_TEXT]
SAID += [
    "application/json; charset*=no-such-codec''x",
    "application/json;CHARSET = hex",
    "application/json; a=b; charset=hex",
]


def ask(person, method, path, said, body=b""):
    headers = {"Authorization": f"Bearer {person.key}", "Content-Type": said}
    return Client(application).open(path, method=method, headers=headers, data=body)


@pytest.mark.parametrize("said", SAID)
def test_a_dry_run_is_one_in_any_charset(alice, instance, said):
    answer = ask(alice, "DELETE", f"{URL}/{instance.id}?dry_run=true", said)
    assert (answer.status_code, answer.json["dry_run"]) == (200, True)
    instance.refresh_from_db()
    assert instance.state == "running"


@pytest.mark.parametrize("said", SAID)
def test_json_is_utf8_whatever_is_said(alice, brokers, said):
    """As RFC 8259 has it; a body in another encoding is no JSON."""
    body = (
        '{"name": "größer", "bandwidth_mib_per_s": 5, "storage_gib": 5, "partitions": 30, "whitelist": ["127.0.0.0/8"]}'
    )
    assert ask(alice, "POST", URL, said, body.encode()).status_code == 202
    assert Instance.objects.unscoped("a test").get().name == "größer"
    assert ask(alice, "POST", URL, said, body.encode("utf-16")).status_code == 400


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/sign-in?next=/", URL])
@pytest.mark.parametrize("said", SAID)
def test_nobody_gets_an_error_of_ours_by_it(path, said):
    assert Client(application).get(path, headers={"Content-Type": said}).status_code < 500


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("multipart/form-data; charset=hex; boundary=abc", "multipart/form-data; boundary=abc"),
        ('Multipart/Form-Data;boundary="a b; c"; charset=hex', 'Multipart/Form-Data; boundary="a b; c"'),
        ("multipart/form-data; charset=hex", "multipart/form-data"),
        ("application/json; boundary=abc", "application/json"),
        ("", ""),
    ],
)
def test_of_a_form_in_parts_the_boundary_is_kept(said, kept):
    assert without_charset(said) == kept


def test_asgi_is_told_the_same():
    seen = {}

    async def application(scope, _receive, _send):
        seen.update(scope)

    scope = {"headers": [(b"content-type", b"application/json; charset=hex"), (b"x", b"a; charset=hex")], "path": "/"}
    asyncio.run(asgi_in_utf8(application)(scope, None, None))
    assert seen == {"headers": [(b"content-type", b"application/json"), (b"x", b"a; charset=hex")], "path": "/"}


@pytest.mark.parametrize("name", ["dryrun", "dry-run", "dryRun", "DRY_RUN", "dry_run "])
def test_another_spelling_of_a_dry_run_is_refused(alice, instance, name):
    answer = alice.api.delete(f"{URL}/{instance.id}?{name}=true")
    assert answer.status_code == 400
    assert "did you mean `dry_run`? Nothing was changed" in str(answer.json())
    instance.refresh_from_db()
    assert instance.state == "running"
