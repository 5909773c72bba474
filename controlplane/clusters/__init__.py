"""Physical clusters: brokers as ZooKeeper shows them, and the ports tenants' listeners may use."""
