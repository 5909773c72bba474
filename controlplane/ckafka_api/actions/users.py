"""Users. The vendor's user has a number and two times; ours has a name, of which the number is made."""

from __future__ import annotations

import hashlib
from typing import Any

from controlplane.access import selectors, users
from controlplane.ckafka_api.actions.calls import Call, done, page_of
from controlplane.ckafka_api.errors import CkafkaError, Code
from controlplane.core.errors import AlreadyExists


def create(call: Call) -> dict[str, Any]:
    """CreateUser: by both SCRAM mechanisms."""
    name = call.parameters["Name"]
    try:
        users.user_create(**call.place, name=name, password=call.parameters["Password"])
    except AlreadyExists as error:
        raise CkafkaError(Code.IN_USE, error.detail) from error
    return done()


def password_set(call: Call) -> dict[str, Any]:
    """ModifyPassword: who does not know the present one changes nothing."""
    parameters = call.parameters
    users.user_password_set(
        **call.place, name=parameters["Name"], password=parameters["PasswordNew"], present=parameters["Password"]
    )
    return done()


def delete(call: Call) -> dict[str, Any]:
    """DeleteUser."""
    users.user_delete(**call.place, name=call.parameters["Name"])
    return done()


def listed(call: Call) -> dict[str, Any]:
    """DescribeUser."""
    word = call.parameters.get("SearchWord", "")
    names = [view.name for view in selectors.user_list(**call.view) if word in view.name]
    page = names[page_of(call.parameters, default=20, most=500)]
    return {"TotalCount": len(names), "Users": [{"UserId": user_number(name), "Name": name} for name in page]}


def user_number(name: str) -> int:
    """What the vendor's programs call it."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6])
