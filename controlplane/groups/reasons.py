"""Why it is not known how old the oldest unread record of a partition is: sentences of REST, and of pages in their language."""

from __future__ import annotations

MOST_DATED = 500
"""Partitions of which a record is looked at for one page."""

NEVER_COMMITTED = "the group has committed no offset here"
NO_LEADER = "the partition has no leader now, or its topic is gone"
NO_TIMESTAMP = "the record carries no timestamp"
NO_ANSWER = "the broker did not send the record in time"
TOO_MANY = f"only {MOST_DATED} partitions are looked at"
OF_GROUP_ALONE = "a list does not look at records: ask for the group itself"
