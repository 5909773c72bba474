"""The names of an instance's topics, without asking for anybody else's.

Kafka's protocol knows "all topics with everything about them" or "these topics". ZooKeeper lists the bare names of all
below `/brokers/topics`, and an instance's stand together in that list when it is sorted. It is kept for as long as
ZooKeeper says that nothing was added or removed; so the usual question costs one small answer, and the cluster is then
asked about the instance's own topics. Each call looks again whether the list has changed: a caller that has just
made a topic sees it.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from quota.contracts.namespace import instance_key

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from controlplane.clusters.zookeeper import Tree

TOPICS_PATH = "/brokers/topics"

_kept: WeakKeyDictionary[Tree, tuple[Hashable, list[str]]] = WeakKeyDictionary()
_lock = threading.Lock()


def physical_names(tree: Tree, instance_id: str) -> list[str]:
    """The cluster's names of an instance's topics, sorted. Raises ClusterUnavailable."""
    return physical_names_of(tree, [instance_id])[instance_id]


def physical_names_of(tree: Tree, instance_ids: Iterable[str]) -> dict[str, list[str]]:
    """By instance, in one look. Raises ClusterUnavailable."""
    names = _all_names(tree)
    return {instance_id: _owned(names, instance_key(instance_id)) for instance_id in instance_ids}


def _all_names(tree: Tree) -> list[str]:
    mark = tree.children_mark(TOPICS_PATH)
    with _lock:
        kept = _kept.get(tree)
    if kept is None or kept[0] != mark:
        # The mark is older than the names or as old, so that a change in between is read again, not missed.
        kept = (mark, tree.children(TOPICS_PATH))
        with _lock:
            _kept[tree] = kept
    return kept[1]


def _owned(names: list[str], key: str) -> list[str]:
    return names[bisect_left(names, f"{key}.") : bisect_left(names, f"{key}/")]  # "/" follows "."
