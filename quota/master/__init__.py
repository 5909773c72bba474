"""The master: one active of several, elected in ZooKeeper, which shares every instance's limit between its brokers."""
