"""Users and ACLs as the vendor's programs ask for them, over the services that REST uses."""

from __future__ import annotations

import json

import pytest

from controlplane.access import selectors
from controlplane.ckafka_api.actions import acls as actions
from quota.contracts.acls import Acl, AclOperation, PatternType, Permission, ResourceType
from quota.contracts.users import ScramMechanism
from quota.core import scram
from tests.controlplane.access.test_acls_api import in_force as acls_of
from tests.controlplane.access.test_users_api import in_force as users_of

from .conftest import refused

PASSWORD, OTHER = "correct horse battery", "another long password"
READ = {"ResourceType": 2, "ResourceName": "orders", "Operation": 3, "PermissionType": 3}


def asked_of(sdk, instance):
    def ask(action, **parameters):
        return sdk.call_json(action, {"InstanceId": instance.id, **parameters})["Response"]

    return ask


@pytest.fixture
def call(sdk, instance):
    return asked_of(sdk, instance)


def test_a_user_is_made_shown_changed_and_deleted(call, tree, instance):
    call("CreateUser", Name="ann", Password=PASSWORD)
    [user] = users_of(tree, instance)
    assert {one.mechanism for one in user.credentials} == set(ScramMechanism)
    assert all(scram.is_password(one, PASSWORD) for one in user.credentials)
    shown = call("DescribeUser")["Result"]
    assert (shown["TotalCount"], shown["Users"][0]["Name"]) == (1, "ann")
    assert call("DescribeUser", SearchWord="bob")["Result"]["TotalCount"] == 0
    call("ModifyPassword", Name="ann", Password=PASSWORD, PasswordNew=OTHER)
    assert all(scram.is_password(one, OTHER) for one in users_of(tree, instance)[0].credentials)
    call("DeleteUser", Name="ann")
    assert users_of(tree, instance) == ()


@pytest.mark.parametrize(
    ("action", "parameters", "code"),
    [
        ("CreateUser", {"Name": "ann", "Password": OTHER}, "ResourceInUse"),
        ("CreateUser", {"Name": "bob", "Password": "short"}, "InvalidParameterValue"),
        ("CreateUser", {"Name": "bob"}, "MissingParameter"),
        ("ModifyPassword", {"Name": "ann", "Password": OTHER, "PasswordNew": OTHER}, "InvalidParameterValue"),
        ("ModifyPassword", {"Name": "bob", "Password": OTHER, "PasswordNew": OTHER}, "ResourceNotFound"),
        ("DeleteUser", {"Name": "bob"}, "ResourceNotFound"),
        ("CreateAcl", {**READ, "ResourceType": 9}, "InvalidParameterValue"),
        ("CreateAcl", {**READ, "Operation": 1}, "InvalidParameterValue"),
        ("CreateAcl", {**READ, "Host": "nowhere"}, "InvalidParameterValue"),
        ("CreateAcl", {**READ, "ResourceNameList": '["a"]'}, "InvalidParameterValue"),
        ("CreateAcl", {**READ, "ResourceName": ""}, "MissingParameter"),
        ("DeleteAcl", READ, "ResourceNotFound"),
        ("DeleteAcl", {"ResourceType": 2, "ResourceName": "orders", "Operation": 3}, "MissingParameter"),
        ("DeleteAclRule", {"RuleName": "ord"}, "ResourceNotFound"),
        ("ModifyAclRule", {"RuleName": "ord", "IsApplied": 0}, "UnsupportedOperation"),
        (
            "CreateAclRule",
            {"ResourceType": "Topic", "PatternType": "PRESET", "RuleName": "all", "RuleList": []},
            "UnsupportedOperation",
        ),
        (
            "CreateAclRule",
            {"ResourceType": "Topic", "PatternType": "PREFIXED", "Pattern": "ord", "RuleName": "x", "RuleList": []},
            "UnsupportedOperation",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_the_vendor_s_codes(call, tree, instance, action, parameters, code):
    call("CreateUser", Name="ann", Password=PASSWORD)
    before = users_of(tree, instance)
    found, message = refused(lambda: call(action, **parameters))
    assert found == code
    assert PASSWORD not in message
    assert OTHER not in message
    assert (users_of(tree, instance), acls_of(tree, instance)) == (before, ())


def acl(**members):
    usual = {
        "resource_type": ResourceType.TOPIC,
        "pattern_type": PatternType.LITERAL,
        "resource_name": "orders",
        "principal": "User:*",
        "host": "*",
        "operation": AclOperation.READ,
        "permission": Permission.ALLOW,
    }
    return Acl(**{**usual, **members})


def test_an_acl_for_each_name_and_host(call, tree, instance):
    named = {name: value for name, value in READ.items() if name != "ResourceName"}
    call(
        "CreateAcl",
        **named,
        ResourceNameList='["orders", "clicks"]',
        Host="10.0.0.1; 10.1.0.0/16",
        Principal="User:ann",
    )
    assert set(acls_of(tree, instance)) == {
        acl(resource_name=name, host=host, principal="User:ann")
        for name in ("orders", "clicks")
        for host in ("10.0.0.1", "10.1.0.0/16")
    }
    shown = call("DescribeACL", ResourceType=2, ResourceName="orders")["Result"]
    assert shown["TotalCount"] == 2
    assert shown["AclList"][0] == {
        "ResourceType": 2,
        "ResourceName": "orders",
        "Principal": "User:ann",
        "Host": "10.0.0.1",
        "Operation": 3,
        "PermissionType": 3,
    }
    assert call("DescribeACL", ResourceType=2)["Result"]["TotalCount"] == 4
    assert call("DescribeACL", ResourceType=2, SearchWord="bob")["Result"]["TotalCount"] == 0


def test_the_cluster_need_not_be_named(call, tree, instance):
    call("CreateAcl", ResourceType=4, Operation=12, PermissionType=3)
    assert acls_of(tree, instance)[0].resource_name == "kafka-cluster"


def test_one_is_deleted_or_all_of_a_resource(call, tree, instance):
    call("CreateAcl", **READ)
    call("CreateAcl", **{**READ, "Operation": 4}, Principal="User:ann")
    call("CreateAcl", **{**READ, "Operation": 8}, Principal="User:ann")
    call("DeleteAcl", **READ, Host="*")  # or it would be signed as what made it
    assert {each.operation for each in acls_of(tree, instance)} == {AclOperation.WRITE, AclOperation.DESCRIBE}
    call("DeleteAcl", ResourceType=2, ResourceName="orders")
    assert acls_of(tree, instance) == ()


RULES = [
    {"Operation": "Read", "PermissionType": "Allow", "Host": "*", "Principal": "User:ann"},
    {"Operation": "All", "PermissionType": "Deny", "Host": "10.0.0.0/8", "Principal": "User:bob"},
]


def test_several_rules_for_several_topics(call, tree, instance):
    assert call("BatchCreateAcl", ResourceType=2, ResourceNames=["orders", "clicks"], RuleList=RULES)["Result"] == 0
    assert len(acls_of(tree, instance)) == 4


def test_a_rule_of_a_prefix_is_our_acls_with_one(call, tree, instance, alice):
    rule = {"ResourceType": "Topic", "PatternType": "PREFIXED", "Pattern": "ord", "RuleName": "ord"}
    number = call("CreateAclRule", **rule, RuleList=RULES)["Result"]
    found = selectors.acl_list(organisation=alice.organisation, instance_id=instance.id)
    assert {each.pattern_type for each in found} == {PatternType.PREFIXED}
    [shown] = call("DescribeAclRule")["Result"]["AclRuleList"]
    assert (shown["RuleName"], shown["Pattern"], shown["IsApplied"]) == ("ord", "ord", 1)
    assert sorted(map(str, json.loads(shown["AclList"]))) == sorted(map(str, RULES))
    assert call("DescribeAclRule", PatternType="PRESET")["Result"]["TotalCount"] == 0
    assert call("ModifyAclRule", RuleName="ord", IsApplied=1)["Result"] == number
    assert call("DeleteAclRule", RuleName="ord")["Result"] == number
    assert acls_of(tree, instance) == ()


def test_names_times_hosts_are_refused_before_they_are_made(call, monkeypatch):
    made = []
    monkeypatch.setattr(actions, "Acl", lambda *members: made.append(members) or Acl(*members))
    many = json.dumps([f"t{number}" for number in range(3000)])
    hosts = ";".join(f"10.0.{number >> 8}.{number & 255}" for number in range(300))
    asked = {name: value for name, value in READ.items() if name != "ResourceName"}
    assert refused(lambda: call("CreateAcl", **asked, ResourceNameList=many, Host=hosts))[0] == "InvalidParameterValue"
    assert len(made) < 2000


@pytest.mark.parametrize("names", ["[" * 100_000, r'["\ud800"]', r'["a\u0000b"]', '["a", "a"'])
def test_a_list_of_names_that_is_no_text_is_refused(call, tree, instance, names):
    asked = {name: value for name, value in READ.items() if name != "ResourceName"}
    assert refused(lambda: call("CreateAcl", **asked, ResourceNameList=names))[0] == "InvalidParameterValue"
    assert not acls_of(tree, instance)


def test_a_name_with_a_nul_is_refused(call, tree, instance):
    assert refused(lambda: call("CreateAcl", **{**READ, "ResourceName": "a\0b"}))[0] == "InvalidParameterValue"
    assert refused(lambda: call("CreateAcl", **READ, Principal="User:a\0b"))[0] == "InvalidParameterValue"
    assert not acls_of(tree, instance)
