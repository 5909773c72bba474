"""Physical clusters: brokers as ZooKeeper shows them, the flow master, and the ports tenants' listeners may use.

address             where a cluster is reached: the first argument of every door
zookeeper           the door to ZooKeeper, the only module that imports kazoo
coordination        what stands in ZooKeeper, in our own words; one observation of a cluster
identification      how this process proves to brokers and masters who it is
proposals           a change of access that is tried, and what brokers have seen of it
master              the door to the flow master's read API
journals            what masters keep, read on from where one was
topic_names         an instance's topics, by ZooKeeper's list of all
models              clusters, brokers, ports
services selectors  brokers kept in step with their registrations; ports given out
registering         clusters that operators add; their zones and capacity; cordoned, drained
"""
