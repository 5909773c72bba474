"""What a broker knows of the others: metadata, registration, configurations, and the door to ZooKeeper."""
