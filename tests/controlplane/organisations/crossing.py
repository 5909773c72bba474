"""A control plane of its own, on a real database: two change one organisation at once, each of whom locks several of its rows.

Run by test_crossing.py. The first of two stops for a moment between two of its locks, and the second is asked meanwhile: where
they take locks in different orders, each waits for the other, and the database refuses one. Prints what was answered, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from datetime import timedelta
from pathlib import Path

from tests.support.django_process import set_up

WITHIN_S = 1.0
"""So long the first one stops: the second has its first lock by then, or waits for it."""


def main(directory: Path, database_url: str) -> None:
    set_up(str(directory), database_url, SLUICE_ZOOKEEPER_ACL="off")  # there is none
    from django.conf import settings
    from django.db import connection, connections
    from django.db.models.signals import post_delete

    settings.ALLOWED_HOSTS = ["testserver"]
    from controlplane.accounts import joining
    from controlplane.accounts import services as accounts
    from controlplane.core.clock import SYSTEM_CLOCK
    from controlplane.core.errors import SluiceError
    from controlplane.organisations import deletion, ownership, removal
    from controlplane.sso import services as sso
    from controlplane.sso.models import SsoLink, SsoProvider
    from controlplane.sso.oidc import Identity
    from controlplane.tenants import invitations
    from controlplane.tenants import services as tenants
    from controlplane.tenants.models import Membership, Organisation, Role
    from tests.controlplane import conftest
    from tests.controlplane.sso.rows import provider_row

    sso.asking.endpoints_at = lambda _issuer: None  # it is asked for nothing here
    sso.installed.places = lambda: ["https://login.example.com"]

    def client_of(key):
        api = conftest.client_of(key)
        api.raise_request_exception = (
            False  # what one request raises, Django's client tells every other one of the process, too
        )
        return api

    class World:
        """The membership with the lowest number is of a member, then come two owners; all are connected to a provider."""

        def __init__(self, name):
            people = [accounts.user_ensure(email=f"{each}@{name}.example.com", password=None)[0] for each in "cab"]
            self.carol, self.alice, self.bob = people
            self.organisation = tenants.organisation_create(name=name, owner=self.carol)
            for person in (self.alice, self.bob):
                tenants.membership_set(organisation=self.organisation, user=person, role=Role.OWNER)
            tenants.membership_set(organisation=self.organisation, user=self.carol, role=Role.MEMBER)
            self.provider = provider_row(self.organisation)
            SsoProvider.objects.for_organisation(self.organisation).update(is_on=True)
            self.provider.refresh_from_db()
            for person in people:
                SsoLink.objects.for_organisation(self.organisation).create(
                    organisation=self.organisation,
                    membership=self.member(person),
                    issuer=self.provider.issuer,
                    subject=person.email,
                    created_at=SYSTEM_CLOCK.now(),
                )
            self.keys = {
                person: accounts.api_key_create(organisation=self.organisation, user=person, name="test")[1]
                for person in people
            }

        def member(self, person):
            return Membership.objects.get(organisation=self.organisation, user=person)

        def at(self, rest=""):
            return f"/api/v1/organisations/{self.organisation.id}{rest}"

        def put_out_of_force(self):
            return client_of(self.keys[self.alice]).patch("/api/v1/sso", {"in_force": False})

        def set_anew(self):
            body = {"label": "Corp", "issuer": self.provider.issuer, "client_id": "other", "client_secret": "x"}
            return client_of(self.keys[self.alice]).put("/api/v1/sso", body)

        def remove_provider(self):
            return client_of(self.keys[self.alice]).delete("/api/v1/sso")

        def hand_over(self):
            return client_of(self.keys[self.bob]).post(
                self.at("/transfer"), {"member_id": self.member(self.carol).pk, "step_down_to": "member"}
            )

        def delete(self):
            return client_of(self.keys[self.bob]).post(self.at("/deletion"), {"name": self.organisation.name})

        def take_out(self):
            return client_of(self.keys[self.bob]).delete(f"/api/v1/members/{self.member(self.carol).pk}")

        def disconnect(self):
            return sso.member_disconnect(organisation=self.organisation, user=self.carol)

        def invite(self):
            self.invitation, _ = invitations.invitation_create(
                organisation=self.organisation,
                inviter=self.bob,
                email="dora@example.com",
                role=Role.MEMBER,
                is_mailed=True,
            )

        def join(self):
            begun = sso.Begun(
                self.organisation.pk, self.provider.issuer, self.provider.client_id, "s", "n", "v", self.invitation.pk
            )
            return sso.invited_join(asked=self.provider, begun=begun, identity=Identity("dora", "dora@example.com"))

        def mark_as_due(self):
            ago = SYSTEM_CLOCK.now() - timedelta(days=1)
            Organisation.objects.filter(pk=self.organisation.pk).update(deletion_asked_at=ago, deletes_at=ago)

        def remove(self):
            return removal._remove(Organisation.objects.get(pk=self.organisation.pk), SYSTEM_CLOCK)  # this one alone

    def told(call) -> str:
        """``200``; the code of a refusal; the name of what should not have happened."""
        try:
            answer = call()
        except SluiceError as error:
            return error.code
        except Exception as error:  # noqa: BLE001  # whatever it is, it is told
            return type(error).__name__
        finally:
            connections.close_all()
        return str(getattr(answer, "status_code", 200))

    def crossed(first, second, stop_at) -> list[str]:
        """`stop_at(pause)`: have `pause` called between two locks of the first one."""
        stands, over, answers = threading.Event(), threading.Event(), {}
        me = None

        def pause():
            if threading.current_thread() is me:
                stands.set()
                over.wait(WITHIN_S)

        def one():
            answers["first"] = told(first)
            stands.set()

        def other():
            stands.wait(30)
            answers["second"] = told(second)
            over.set()

        me = threading.Thread(target=one)
        threads = [me, threading.Thread(target=other)]
        undo = stop_at(pause)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        undo()
        return [answers["first"], answers["second"]]

    def before(module, name):
        """Stop where this function is called."""

        def stop_at(pause):
            whole = getattr(module, name)

            def paused(*arguments, **members):
                pause()
                return whole(*arguments, **members)

            setattr(module, name, paused)
            return lambda: setattr(module, name, whole)

        return stop_at

    def once_links_are_gone(pause):
        def gone(**_):
            pause()

        post_delete.connect(gone, sender=SsoLink)
        return lambda: post_delete.disconnect(gone, sender=SsoLink)

    handing, deleting = before(ownership, "sending_check"), before(deletion, "sending_check")
    joins = before(joining, "join_by_provider")
    cases = (
        ("hand over, out of force", "hand_over", "put_out_of_force", handing, None),
        ("hand over, set", "hand_over", "set_anew", handing, None),
        ("hand over, remove", "hand_over", "remove_provider", handing, None),
        ("delete, out of force", "delete", "put_out_of_force", deleting, None),
        ("delete, hand over", "delete", "hand_over", deleting, None),
        ("take out, out of force", "take_out", "put_out_of_force", once_links_are_gone, None),
        ("take out, disconnect", "take_out", "disconnect", once_links_are_gone, None),
        ("join, remove for good", "join", "remove", joins, "mark_as_due"),
    )
    found = {}
    for number, (name, first, second, stop_at, prepare) in enumerate(cases):
        world = World(f"quay-{number}")
        if prepare:
            world.invite()
            getattr(world, prepare)()
        found[name] = crossed(getattr(world, first), getattr(world, second), stop_at)
    connection.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
