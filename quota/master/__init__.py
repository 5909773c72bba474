"""The master: one active of several, elected in ZooKeeper, which shares every instance's limit between its brokers.

election store zookeeper  which master is active; what ZooKeeper says; the door
service                   the master without its sockets
server                    brokers report here
reading views http        the read API: who may look, what is shown, just enough HTTP
secured                   TLS at both ports
journal                   throttled intervals, and what is billed of elastic bandwidth, kept in files
config                    master.toml
"""
