"""Programs and libraries that use a cluster from outside, through its protocol only. Nothing of a broker imports them.

The clients of the documents, on our own protocol package; their threads and blocking sockets are their own, no broker's loop::

    producer             `Producer`: sync and async
    connector            `ConsumerConnector`: a group by ZooKeeper
    simple_consumer      `SimpleConsumer`: one broker, no state
    mirror               `python -m dataplane.clients.mirror`: topics of other clusters into one
    console              `python -m dataplane.clients.console`, on another library

    fetching             Fetch and ListOffsets, what every reader needs
    partitioners         which partition a message goes to
    cluster connection   brokers and leaders; one connection to one broker
    versions             which version of an API is used with brokers of any age
    authentication       TLS, SASL
    zookeeper            the door to ZooKeeper, and brokers as it has them
    moving               records on their way from one batch into another, not taken apart
    messages             messages, read and written in all of Kafka's formats
    settings errors      settings by dotted names; the tree of errors
"""
