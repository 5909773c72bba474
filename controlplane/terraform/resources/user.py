"""`sluice_user`: who may log in by SCRAM. The service keeps no password, so that none can be read back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from controlplane.cli import operations as ops
from controlplane.terraform.diagnostics import Diagnostic
from controlplane.terraform.resources.base import ID, INSTANCE_ID, Doing, Resource, given, parts
from controlplane.terraform.schema import NUMBER, STRING, STRINGS, Attribute
from controlplane.terraform.values import UNKNOWN, State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.terraform.rest import Client

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


class UserResource(Resource):
    """A user."""

    name = "sluice_user"
    about = "A user that clients log in as."
    attributes = (
        ID,
        INSTANCE_ID,
        Attribute("name", STRING, "its name", required=True, replaces=True),
        Attribute("password", STRING, "kept in the state: prefer password_wo", sensitive=True),
        Attribute("password_wo", STRING, "the password, kept in no plan and no state", sensitive=True, write_only=True),
        Attribute("password_wo_version", NUMBER, "another one sends password_wo again"),
        Attribute("keep_previous_s", NUMBER, "how long the password before stays good when it is changed"),
        Attribute(
            "mechanisms",
            STRINGS,
            "by default both",
            computed=True,
            replaces=True,
            choices=MECHANISMS,
            empty_is_null=True,
        ),
    )
    codes: ClassVar[Mapping[str, str]] = {"user_exists": "name"}

    def create(self, doing: Doing, planned: State) -> State:
        body = {**given(planned, "name", "mechanisms"), "password": _password(doing, planned)}
        doing.change(ops.USER_CREATE, body, instance_id=planned["instance_id"])
        return self.read(doing.client, planned)

    def read(self, client: Client, state: State) -> State:
        """Whether the password is still the one of the state nobody can say."""
        found = client.get(ops.USER, instance_id=state["instance_id"], user=state["name"])
        shown = {"id": f"{state['instance_id']}/{found['name']}", "mechanisms": frozenset(found["mechanisms"])}
        return {**state, **shown, "password_wo": None}

    def update(self, doing: Doing, prior: State, planned: State) -> State:
        """Another password, and nothing else can be another."""
        by_version = planned["password_wo_version"] != prior["password_wo_version"]
        if planned["password"] != prior["password"] or by_version:
            body = {"password": _password(doing, planned), **given(planned, "keep_previous_s")}
            doing.change(ops.USER_PASSWORD, body, instance_id=prior["instance_id"], user=prior["name"])
        return self.read(doing.client, {**planned, "id": prior["id"]})

    def delete(self, doing: Doing, state: State) -> None:
        doing.change(ops.USER_DELETE, instance_id=state["instance_id"], user=state["name"])

    def of_id(self, text: str) -> State:
        instance_id, name = parts(text, "ins-…/anna")
        return {"instance_id": instance_id, "name": name}

    def check(self, config: State) -> Sequence[Diagnostic]:
        """One of both passwords."""
        written = [name for name in ("password", "password_wo") if config[name] is not None]
        found = list(super().check(config))
        if len(written) != 1:
            found.append(Diagnostic("One of password and password_wo", "Write one of both, not both.", ("password",)))
        if config["password_wo"] is not None and config["password_wo_version"] is None:
            detail = "Nobody can see whether password_wo is another: raise password_wo_version when it is."
            found.append(Diagnostic("password_wo has no version", detail, ("password_wo_version",)))
        return found


def _password(doing: Doing, planned: State) -> Any:
    written = doing.config.get("password_wo")
    return planned["password"] if written is None or written is UNKNOWN else written
