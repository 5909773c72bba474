"""What is found as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.serializers import QueryIntegerField, StrictSerializer
from controlplane.search.kinds import KINDS
from controlplane.search.matching import LONGEST, MOST_WORDS
from controlplane.search.selectors import MOST, OF_EACH

KIND_CHOICES = [(kind.name, kind.title) for kind in KINDS]


class SearchQuerySerializer(StrictSerializer):
    """What is looked for."""

    q = serializers.CharField(
        max_length=LONGEST,
        trim_whitespace=False,
        help_text=f"at most {LONGEST} characters and {MOST_WORDS} words; every word of it has to be in what is found, whatever "
        "the case",
    )
    kind = serializers.ChoiceField(
        KIND_CHOICES, required=False, help_text="of this kind alone; refused where the caller may not look at it"
    )
    limit = QueryIntegerField(default=OF_EACH, min_value=1, max_value=MOST, help_text="items of each kind")
    instance_id = serializers.CharField(
        required=False, max_length=32, help_text="an instance that is looked through first"
    )


class SearchItemSerializer(serializers.Serializer[Any]):
    """One thing that fits."""

    kind = serializers.ChoiceField(KIND_CHOICES)
    id = serializers.CharField(help_text="what REST knows it by; of an ACL its text")
    name = serializers.CharField()
    where = serializers.CharField(help_text="what tells it from others of its name; may be empty")
    instance_id = serializers.SerializerMethodField(help_text="null: it is the organisation's")
    url = serializers.CharField(help_text="its address in REST, or that of the list in which it stands")
    page = serializers.CharField(help_text="its page in the console")

    def get_instance_id(self, hit: Any) -> str | None:
        """Empty is none."""
        return hit.instance_id or None


class SearchKindSerializer(serializers.Serializer[Any]):
    """How it stands with one kind."""

    kind = serializers.ChoiceField(KIND_CHOICES, source="kind.name")
    found = serializers.SerializerMethodField(help_text="how many of `items` are of it")
    has_more = serializers.BooleanField(help_text="whether there are others, beyond `limit`")
    is_partial = serializers.BooleanField(
        help_text="not everything was looked at: a cluster is away, or users, ACLs and throttle rules of many instances or by "
        "one letter"
    )
    seen_within_s = serializers.IntegerField(
        source="kind.seen_within_s",
        allow_null=True,
        help_text="how old what is known may be: consumer groups are those that were seen so lately; null: it is as it is now",
    )
    more = serializers.CharField(help_text="the console's page with all of them")

    def get_found(self, found: Any) -> int:
        """Of this answer."""
        return len(found.hits)


class SearchSerializer(serializers.Serializer[Any]):
    """What fits: items by kind, the best of each first."""

    items = SearchItemSerializer(many=True)
    kinds = SearchKindSerializer(many=True, help_text="those that the caller may look at")
