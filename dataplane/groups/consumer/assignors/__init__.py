"""Who shall have what: Kafka's two assignors of the broker, pure.

subscription  what an assignor is given; what it makes
uniform       as even as can be, then as it was
range_        neighbouring partitions, the same of each topic to the same member
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.groups.consumer.assignors.range_ import assign_range
from dataplane.groups.consumer.assignors.uniform import assign_uniform

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dataplane.groups.consumer.assignors.subscription import Assign

ASSIGNORS: Mapping[str, Assign] = {"uniform": assign_uniform, "range": assign_range}
"""By the names that clients ask for."""
