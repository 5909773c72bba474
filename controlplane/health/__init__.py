"""How an instance is: a value with reasons, from what brokers, the flow master, the meter and ZooKeeper say."""
