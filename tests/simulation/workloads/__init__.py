"""What clients do in a campaign, each kind with what it must find at the end. `orders` is in every run, others by the seed.

orders     several producers with batches in flight, one that is content with acks=1, and readers
ledger     a durable topic (flush.messages=1): what is acknowledged is on disks
trimmed    the oldest goes: by retention, and by DeleteRecords
latest     a compacted topic
remade     a topic that is deleted and made again under its name
members    a group whose members come, commit and are thrown out
transfers  records are moved to another topic, each exactly once, by transactions; in every fifth run
"""

from tests.simulation.workloads.base import Shared, Workload
from tests.simulation.workloads.latest import Latest
from tests.simulation.workloads.ledger import Ledger
from tests.simulation.workloads.members import Members
from tests.simulation.workloads.orders import Orders
from tests.simulation.workloads.remade import Remade
from tests.simulation.workloads.transfers import Transfers
from tests.simulation.workloads.trimmed import Trimmed

OTHERS: tuple[type[Workload], ...] = (Ledger, Trimmed, Latest, Remade, Members)

__all__ = ["OTHERS", "Orders", "Shared", "Transfers", "Workload"]
