"""Transactions as JSON. Null is what is not known, or not there."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.serializers import QueryIntegerField, StrictSerializer
from controlplane.kafka.transactions import STATES
from controlplane.transactions.selectors import IDLE_S

MOST_SECONDS = 10**9
LEAST_IDLE_S = 60
"""One that has just ended is open in a partition until its marker has come."""


class TransactionQuerySerializer(StrictSerializer):
    """Which transactions."""

    state = serializers.ChoiceField(STATES, required=False, help_text="Kafka's")
    open_seconds = QueryIntegerField(
        required=False, min_value=0, max_value=MOST_SECONDS, help_text="only those that have been open for longer"
    )


class HangingQuerySerializer(StrictSerializer):
    """Which transactions that hang."""

    idle_seconds = serializers.IntegerField(
        required=False,
        min_value=LEAST_IDLE_S,
        max_value=MOST_SECONDS,
        help_text=f"whose producer has written nothing there for longer; {IDLE_S} by default, {LEAST_IDLE_S} at least",
    )


class TransactionPartitionSerializer(serializers.Serializer[Any]):
    """A partition of the transaction."""

    topic = serializers.CharField()
    partition = serializers.IntegerField()
    first_offset = serializers.IntegerField(
        allow_null=True,
        help_text="where the transaction begins; null: nothing is written here, or its leader does not say",
    )
    holds_back = serializers.BooleanField(
        allow_null=True,
        help_text="whether this is the partition's last stable offset, where readers at read_committed stand",
    )


class TransactionSummarySerializer(serializers.Serializer[Any]):
    """A transactional id in a list."""

    transactional_id = serializers.CharField()
    state = serializers.CharField(help_text=f"Kafka's: {', '.join(STATES)}")
    producer_id = serializers.IntegerField()
    producer_epoch = serializers.IntegerField()
    timeout_ms = serializers.IntegerField(help_text="after which an open transaction is aborted")
    started_at = serializers.DateTimeField(allow_null=True, help_text="of the latest transaction; null: there was none")
    open_seconds = serializers.FloatField(allow_null=True, help_text="null: none is open")


class TransactionSerializer(TransactionSummarySerializer):
    """A transactional id."""

    partitions = TransactionPartitionSerializer(many=True)


class TransactionPageSerializer(serializers.Serializer[Any]):
    """A page of transactional ids."""

    items = TransactionSummarySerializer(many=True)
    next = serializers.CharField(allow_null=True)


class HangingTransactionSerializer(serializers.Serializer[Any]):
    """A transaction that is open in a partition and that no coordinator knows: nobody will end it by itself."""

    topic = serializers.CharField()
    partition = serializers.IntegerField()
    first_offset = serializers.IntegerField(help_text="where it begins: by this it is ended")
    producer_id = serializers.IntegerField()
    producer_epoch = serializers.IntegerField()
    written_at = serializers.DateTimeField(help_text="when the last of it came")
    idle_seconds = serializers.FloatField(help_text="since then")
    holds_back = serializers.BooleanField(
        help_text="whether this is the partition's last stable offset, where readers at read_committed stand"
    )


class HangingTransactionPageSerializer(serializers.Serializer[Any]):
    """A page of transactions that hang."""

    items = HangingTransactionSerializer(many=True)
    next = serializers.CharField(allow_null=True)
    unknown_partitions = serializers.IntegerField(
        help_text="of which nothing is known now: they have no leader, or it does not answer"
    )
