"""The names of an instance's topics, without asking for anybody else's.

Kafka's protocol knows "all topics with everything about them" or "these topics". ZooKeeper lists the bare names of all
below `/brokers/topics`. That list is kept, sorted into instances, for as long as ZooKeeper says that nothing was added
or removed; so the usual question costs one small answer, and the cluster is then asked about the instance's own topics.
Each call looks anew whether the list has changed, so that who has just made a topic sees it.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from quota.contracts.namespace import instance_key, split_physical

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from controlplane.clusters.zookeeper import Tree

TOPICS_PATH = "/brokers/topics"

_Kept = tuple["Hashable", "Mapping[str, list[str]]"]
_kept: WeakKeyDictionary[Tree, _Kept] = WeakKeyDictionary()
_lock = threading.Lock()


def physical_names(tree: Tree, instance_id: str) -> list[str]:
    """The cluster's names of an instance's topics, sorted. Raises ClusterUnavailable."""
    mark = tree.children_mark(TOPICS_PATH)
    with _lock:
        kept = _kept.get(tree)
    if kept is None or kept[0] != mark:
        # The mark is older than the names or as old, so that a change in between is read again, not missed.
        kept = (mark, _by_instance(tree.children(TOPICS_PATH)))
        with _lock:
            _kept[tree] = kept
    return kept[1].get(instance_key(instance_id), [])


def _by_instance(names: list[str]) -> Mapping[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        owned = split_physical(name)
        if owned is not None:
            found[owned[0]].append(name)
    return dict(found)
