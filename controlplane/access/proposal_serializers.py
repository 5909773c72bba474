"""A proposal and what was found of it, as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.access.proposals import LEAST_S, LONGEST_S, USUAL_S, ProposalView
from controlplane.access.serializers import AclCreateSerializer, AclSerializer
from controlplane.api.serializers import (
    CidrsField,
    StrictBooleanField,
    StrictIntegerField,
    StrictSerializer,
)
from quota.contracts.proposals import CONNECT, MOST_ACLS, MOST_FINDINGS


class ProposalCreateSerializer(StrictSerializer):
    """What would be in force. What is not named stays as it is."""

    not_empty = True

    whitelist = CidrsField(required=False, help_text="of the instance")
    route_whitelists = serializers.DictField(
        child=CidrsField(), required=False, help_text="by the ids of routes: their own whitelists"
    )
    acls_added = serializers.ListField(child=AclCreateSerializer(), max_length=MOST_ACLS, required=False)
    acls_removed = serializers.ListField(child=AclCreateSerializer(), max_length=MOST_ACLS, required=False)
    allow_everyone_if_no_acl_found = StrictBooleanField(required=False, help_text="as in the instance's config")
    lasts_s = StrictIntegerField(
        min_value=LEAST_S,
        max_value=LONGEST_S,
        default=USUAL_S,
        help_text="then it is discarded; by default a day",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Something is proposed."""
        if set(attrs) == {"lasts_s"}:
            raise serializers.ValidationError({"lasts_s": "is no proposal by itself"})
        return attrs

    @staticmethod
    def wanted(members: dict[str, Any]) -> dict[str, Any]:
        """As `proposal_make` takes them."""
        acls = {
            name: [AclCreateSerializer.acl(item) for item in members.pop(name, ())]
            for name in ("acls_added", "acls_removed")
        }
        everyone = members.pop("allow_everyone_if_no_acl_found", None)
        return {**members, **acls, "allow_everyone": everyone}


class CutOffSerializer(serializers.Serializer[Any]):
    """Who would be cut off from what."""

    principal = serializers.CharField(source="cut.principal")
    source = serializers.CharField(source="cut.source", help_text="the client's address")
    route = serializers.CharField(source="cut.route")
    operation = serializers.CharField(source="cut.operation", help_text=f"of ACLs, or {CONNECT}")
    resource = serializers.CharField(source="cut.resource", help_text=f"such as TOPIC:orders; empty with {CONNECT}")
    count = serializers.IntegerField(help_text="how often, on all brokers")
    first = serializers.DateTimeField()
    last = serializers.DateTimeField()


class BrokerFindingsSerializer(serializers.Serializer[Any]):
    """How much a broker has judged."""

    broker = serializers.IntegerField()
    since = serializers.DateTimeField()
    connections = serializers.IntegerField(help_text="those that were open when it began among them")
    requests = serializers.IntegerField(
        help_text="questions to the ACLs; what a connection repeats, and would be permitted, is judged once"
    )


class ProposalSerializer(serializers.Serializer[Any]):
    """A proposal, and what brokers have found by now."""

    id = serializers.CharField(source="proposal.id")
    made_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField(help_text="then it is discarded")
    whitelist = serializers.ListField(
        source="proposal.whitelist", child=serializers.CharField(), allow_null=True, help_text="null: it stays"
    )
    route_whitelists = serializers.DictField(
        source="proposal.route_whitelists", child=serializers.ListField(child=serializers.CharField())
    )
    acls_added = AclSerializer(source="proposal.acls_added", many=True)
    acls_removed = AclSerializer(source="proposal.acls_removed", many=True)
    allow_everyone_if_no_acl_found = serializers.BooleanField(
        source="proposal.allow_everyone", allow_null=True, help_text="null: it stays"
    )
    would_cut_off = CutOffSerializer(
        source="cut_off", many=True, help_text=f"the most frequent first; {MOST_FINDINGS} of each broker at most"
    )
    left_out = serializers.IntegerField(help_text="times that somebody would be cut off who is not named")
    judged_connections = serializers.IntegerField(source="connections")
    judged_requests = serializers.IntegerField(source="requests")
    brokers = BrokerFindingsSerializer(many=True)
    silent_brokers = serializers.ListField(
        source="silent",
        child=serializers.IntegerField(),
        help_text="that have not said that they judge it: what happens there is not in the list",
    )


def shown(view: ProposalView) -> dict[str, Any]:
    """For an answer."""
    found: dict[str, Any] = ProposalSerializer(view).data
    return found
