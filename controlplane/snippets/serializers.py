"""Snippets as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.serializers import StrictSerializer
from controlplane.routes.validation import MECHANISMS, SECURITIES
from controlplane.snippets.programs import KEYS
from quota.contracts.namespace import MAX_TENANT_TOPIC_LENGTH

LONGEST = 100


class SnippetQuerySerializer(StrictSerializer):
    """For which client, and by which way."""

    client = serializers.ChoiceField(
        choices=KEYS, required=False, help_text="whose files are told; by default nobody's"
    )
    route = serializers.CharField(
        required=False, max_length=LONGEST, help_text="by which route, such as `r2`; by default the oldest"
    )
    topic = serializers.CharField(
        required=False,
        max_length=MAX_TENANT_TOPIC_LENGTH,
        help_text="that the programs name; it need not be there. By default the first by name",
    )
    mechanism = serializers.ChoiceField(
        choices=MECHANISMS, required=False, help_text="of the route's, by which the programs log in"
    )


class SnippetClientSerializer(serializers.Serializer[Any]):
    """A client that there is a snippet for."""

    client = serializers.CharField(source="key")
    client_name = serializers.CharField(source="title")


class SnippetFileSerializer(serializers.Serializer[Any]):
    """A file of a program."""

    file = serializers.CharField(source="name", help_text="its name, with the folders that it stands in")
    content = serializers.CharField(
        source="text",
        help_text="USER, PASSWORD, TOKEN and the like are to be replaced; files that it names are put beside it",
    )


class SnippetSerializer(SnippetClientSerializer):
    """A program that writes a record and one that reads, or one that does both."""

    files = SnippetFileSerializer(many=True)
    run = serializers.ListField(child=serializers.CharField(), help_text="lines of a shell, in the folder of the files")


class SnippetsSerializer(serializers.Serializer[Any]):
    """How a client connects: by which way, and which clients there are snippets for."""

    route = serializers.CharField(source="route.key")
    security = serializers.ChoiceField(choices=SECURITIES, source="route.security")
    mechanism = serializers.CharField(help_text="by which the programs log in; empty: nobody logs in")
    bootstrap = serializers.CharField()
    topic = serializers.CharField()
    items = SnippetClientSerializer(many=True, source="snippets")
    snippet = SnippetSerializer(allow_null=True, help_text="of the client that was named; null: none was")
