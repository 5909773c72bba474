"""The high-level consumer of the documents: a group shares the partitions of its topics among its members, by ZooKeeper.

    connector = Consumer.create(ConsumerConfig.from_properties({"zk.connect": "127.0.0.1:2181", "group.id": "billing"}))
    for stream in connector.create_message_streams({"orders": 2})["orders"]:
        threading.Thread(target=read, args=(stream,)).start()      # `for message in stream: …`
    connector.shutdown()

rebalance            who gets which partitions: pure
subscriptions        what a member says that it reads, as its node has it; topic filters: pure
config               settings
group                the group's nodes in ZooKeeper: members, owners, offsets
streams              what is read from, and how far it was read
fetchers             threads that fill streams, one for each leader
connector            `ConsumerConnector`: registers, rebalances, commits
"""

from dataplane.clients.connector.config import ConsumerConfig
from dataplane.clients.connector.connector import Consumer, ConsumerConnector
from dataplane.clients.connector.streams import KafkaStream, MessageAndMetadata
from dataplane.clients.connector.subscriptions import Blacklist, Whitelist

__all__ = [
    "Blacklist",
    "Consumer",
    "ConsumerConfig",
    "ConsumerConnector",
    "KafkaStream",
    "MessageAndMetadata",
    "Whitelist",
]
