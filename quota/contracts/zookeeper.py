"""Who may do what with each node in ZooKeeper: one table, from which every ACL is made.

Four parties, each with a login of its own (`quota.contracts.zookeeper_login`):

=================  ====================================================================================================
brokers            register, elect a controller, keep topics and in-sync replicas; follow instances
masters            elect one of themselves; follow instances and their throttle rules
controlplane       writes what instances are: specifications, whitelists, users, certificates
operators          may do everything with every node, ACLs included; people, and `manage.py zookeeper_secure`
=================  ====================================================================================================

Everybody else may do nothing.

A right is ZooKeeper's own: `r` reads data, lists children and asks whether the node is there, `w` replaces data, `c` and `d`
create and delete *children* (so who may register stands in the row of ``/brokers/ids``, not below it). A `*` is any one name,
`**` everything below. Ephemeral nodes go with their session and need no `d`.

Only masters may make ``/sluice/master`` and only brokers ``/controller`` or a registration: what the control plane, which the
internet talks to, could forge there would be told other processes' credentials.

A node without a row cannot be made (`UnlistedPathError`). ``/zookeeper/config`` is ZooKeeper's own and left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntFlag, StrEnum


class Party(StrEnum):
    """Whom a node's ACL knows apart."""

    BROKERS = "brokers"
    MASTERS = "masters"
    CONTROL_PLANE = "controlplane"
    OPERATORS = "operators"


class Right(IntFlag):
    """With ZooKeeper's own numbers."""

    READ = 1
    WRITE = 2
    CREATE = 4
    DELETE = 8
    ADMIN = 16


NONE = Right(0)
ALL = Right.READ | Right.WRITE | Right.CREATE | Right.DELETE | Right.ADMIN
_LETTERS = {"r": Right.READ, "w": Right.WRITE, "c": Right.CREATE, "d": Right.DELETE}

_TABLE = """
path                                    brokers masters controlplane

/                                       rcd     -       -
/controller                             r       -       -
/controller_epoch                       rw      -       -
/latest_producer_id_block               rw      -       -

/brokers                                rc      -       -
/brokers/ids                            rc      r       r
/brokers/ids/*                          r       -       r
/brokers/topics                         rcd     -       r
/brokers/topics/*                       rwcd    -       -
/brokers/topics/*/partitions            rcd     -       -
/brokers/topics/*/partitions/*          rcd     -       -
/brokers/topics/*/partitions/*/state    rw      -       -

/admin                                  rcd     -       -
/admin/delete_topics                    rcd     -       -
/admin/delete_topics/*                  r       -       -
/admin/reassign_partitions              rw      -       -
/admin/preferred_replica_election       rw      -       -

/config                                 rc      -       -
/config/topics                          rcd     -       -
/config/topics/*                        rw      -       -
/config/brokers                         rc      -       -
/config/brokers/*                       rw      -       -
/config/changes                         rcd     -       -
/config/changes/*                       r       -       -
/log_dir_event_notification             rcd     -       -
/log_dir_event_notification/*           r       -       -

/consumers                              rc      -       -
/consumers/**                           rwc     -       -

/sluice                                 rc      c       -
/sluice/master                          r       r       r
/sluice/master_epoch                    -       rw      -
/sluice/instances                       r       r       rcd
/sluice/instances/*                     rw      r       rw
/sluice/whitelists                      -       -       rcd
/sluice/whitelists/*                    r       -       rw
/sluice/rules                           c       -       rcd
/sluice/rules/*                         rw      r       rw
/sluice/acls                            c       -       rcd
/sluice/acls/*                          rw      -       rw
/sluice/users                           c       -       rcd
/sluice/users/*                         rw      -       rw
/sluice/token_issuers                   -       -       rcd
/sluice/token_issuers/*                 r       -       rw
/sluice/proposals                       -       -       rcd
/sluice/proposals/*                     rc      -       rwcd
/sluice/proposals/*/*                   rw      -       r
/sluice/certificates                    -       -       rcd
/sluice/certificates/*                  r       -       rw
/sluice/changes                         rc      r       rcd
/sluice/changes/*                       r       r       r
/sluice/applied                         rcd     -       r
/sluice/applied/*                       rw      -       r

/zookeeper                              -       -       -
/zookeeper/quota                        -       -       -
/zookeeper/quota/**                     -       -       -
"""

_ANY, _BELOW = "*", "**"


class UnlistedPathError(LookupError):
    """No row says who may do what with this node. A bug of whoever wants to make it: it has to be in the table."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: `pattern`, and who has which rights. Who has none is not in `rights`."""

    pattern: str
    rights: Mapping[Party, Right]

    def allows(self, party: Party, right: Right) -> bool:
        """Whether a party has all of these rights."""
        return right in self.rights.get(party, NONE)


def _parsed(table: str) -> tuple[Row, ...]:
    header, *lines = (line.split() for line in table.splitlines() if line.strip())
    parties = [Party(name) for name in header[1:]]
    rows = []
    for pattern, *cells in lines:
        given = {party: _rights(cell) for party, cell in zip(parties, cells, strict=True) if cell != "-"}
        rows.append(Row(pattern, {**given, Party.OPERATORS: ALL}))
    return tuple(rows)


def _rights(letters: str) -> Right:
    found = NONE
    for letter in letters:
        found |= _LETTERS[letter]
    return found


class _Branch:
    """The rows that begin with the same names."""

    __slots__ = ("row", "under")

    def __init__(self) -> None:
        self.row: Row | None = None
        self.under: dict[str, _Branch] = {}


def _grown(rows: tuple[Row, ...]) -> _Branch:
    root = _Branch()
    for row in rows:
        branch = root
        for name in _names(row.pattern):
            branch = branch.under.setdefault(name, _Branch())
        branch.row = row
    return root


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


ROWS = _parsed(_TABLE)
_ROOT = _grown(ROWS)
_BY_PATTERN = {row.pattern: row for row in ROWS}
ROOT = "/"
UNTOUCHED = ("/zookeeper/config",)
"""ZooKeeper's own: everybody reads it, nobody writes it."""

DIRECTORIES = tuple(
    row.pattern for row in ROWS if f"{row.pattern}/{_ANY}" in _BY_PATTERN and _ANY not in _names(row.pattern)
)
"""Nodes that only hold others, parents before children. A cluster begins with them."""


def row_of(path: str) -> Row | None:
    """The row of a node, by its path within the cluster's chroot; None: the table does not know it."""
    branch = _ROOT
    for name in _names(path):
        if _BELOW in branch.under:
            return branch.under[_BELOW].row
        following = branch.under.get(name) or branch.under.get(_ANY)
        if following is None:
            return None
        branch = following
    return branch.row


def row_to_make(path: str) -> Row:
    """The row of a node that is about to be made. Raises UnlistedPathError.

    A path that ends with a slash is a node that ZooKeeper itself will name, by a number.
    """
    row = row_of(f"{path}0" if path.endswith("/") and path != ROOT else path)
    if row is None:
        raise UnlistedPathError(f"who may do what with {path} is not said in quota/contracts/zookeeper.py")
    return row
