"""Forms of topics: creating one, and who may use one."""

from __future__ import annotations

from typing import ClassVar

from django import forms

from controlplane.console.forms.base import CidrsField, ConsoleForm, ruled
from controlplane.topics.serializers import MOST_PARTITIONS, MOST_REPLICAS
from quota.contracts.namespace import topic_name_problem

HOUR_MS = 3_600_000
LONGEST_RETENTION_H = 24 * 3650


class TopicForm(ConsoleForm):
    """A topic to be created: name, partitions, replicas."""

    refusals: ClassVar = {
        "topic_exists": "name",
        "invalid_topic": "name",
        "limit_reached": "partitions",
        "invalid_partitions": "partitions",
        "invalid_replication_factor": "replication_factor",
    }

    name = forms.CharField(
        label="Name",
        validators=[ruled(topic_name_problem)],
        max_length=1000,  # the name's own rule says more clearly what is wrong
        help_text="Letters, digits, dots, underscores and hyphens.",
        widget=forms.TextInput(
            {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off", "autofocus": True}
        ),
    )
    partitions = forms.IntegerField(
        label="Partitions",
        min_value=1,
        max_value=MOST_PARTITIONS,
        help_text="How many consumers of a group can read at the same time. It can grow later, and never shrink.",
    )
    replication_factor = forms.IntegerField(
        label="Replicas",
        min_value=1,
        max_value=MOST_REPLICAS,
        help_text="Copies on different brokers. 3 survive the loss of a broker without a pause.",
    )
    retention_h = forms.IntegerField(
        label="Retention",
        required=False,
        min_value=1,
        max_value=LONGEST_RETENTION_H,
        help_text="How long records are kept. Empty: as the cluster has it, 7 days unless its operators chose otherwise.",
    )
    cleanup_policy = forms.ChoiceField(
        label="Cleanup",
        choices=[("delete", "Delete old records"), ("compact", "Keep the newest record of each key")],
        initial="delete",
        required=False,
    )

    units: ClassVar = {"retention_h": "hours"}

    def config(self) -> dict[str, str]:
        """What is to be set for the topic, in Kafka's words."""
        config = {}
        if self.cleaned_data["retention_h"]:
            config["retention.ms"] = str(self.cleaned_data["retention_h"] * HOUR_MS)
        if self.cleaned_data["cleanup_policy"] == "compact":
            config["cleanup.policy"] = "compact"
        return config


class TopicWhitelistForm(ConsoleForm):
    """Who may use one topic, among those who may connect."""

    scope = forms.ChoiceField(
        label="Who may use this topic",
        choices=[("instance", "Whoever may connect to the instance"), ("own", "Only these, among them")],
        widget=forms.RadioSelect,
    )
    cidrs = CidrsField(
        label="Addresses and blocks",
        help_text="One a line. Empty lets nobody use the topic.",
    )

    def blocks(self) -> list[str] | None:
        """What the service takes; None: as the instance."""
        return list(self.cleaned_data["cidrs"]) if self.cleaned_data["scope"] == "own" else None
