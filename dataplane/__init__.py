"""The broker: Kafka's protocol on our own log and replication engine. ARCHITECTURE.md has the map."""
