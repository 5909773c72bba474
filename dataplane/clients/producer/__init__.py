"""The producer of the documents: one class for sending at once and for sending in batches behind the caller's back.

    producer = Producer(ProducerConfig.from_properties({"zk.connect": "127.0.0.1:2181", "producer.type": "async"}))
    producer.send(ProducerData("page-views", b"/index.html", key="alice"))
    producer.close()

config data          settings; what is sent, and what can be plugged in
producer             `Producer`: sync or async
batching             the queue of `producer.type=async`, and the thread that empties it
sending              the default event handler: encode, choose partitions, send to their leaders, again where that may help
"""

from dataplane.clients.producer.config import ProducerConfig
from dataplane.clients.producer.data import CallbackHandler, Encoder, EventHandler, ProducerData, Sent
from dataplane.clients.producer.producer import Producer

__all__ = ["CallbackHandler", "Encoder", "EventHandler", "Producer", "ProducerConfig", "ProducerData", "Sent"]
