"""What a client may do, as the sets of bits that answers carry (KIP-430): everything, until there are ACLs.

A bit's number is Kafka's code of the operation (`tenancy.access.Operation`).
"""

from dataplane.tenancy.access import Operation as Op

OPERATIONS_NOT_ASKED = -(2**31)


def _bits(*operations: Op) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = _bits(
    Op.READ, Op.WRITE, Op.CREATE, Op.DELETE, Op.ALTER, Op.DESCRIBE, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS
)
GROUP_OPERATIONS = _bits(Op.READ, Op.DELETE, Op.DESCRIBE)
CLUSTER_OPERATIONS = _bits(
    Op.CREATE,
    Op.ALTER,
    Op.DESCRIBE,
    Op.CLUSTER_ACTION,
    Op.DESCRIBE_CONFIGS,
    Op.ALTER_CONFIGS,
    Op.IDEMPOTENT_WRITE,
)
