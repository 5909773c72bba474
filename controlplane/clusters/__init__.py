"""Physical clusters: brokers as ZooKeeper shows them, the flow master, and the ports tenants' listeners may use."""
