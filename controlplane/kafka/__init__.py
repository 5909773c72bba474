"""The door to the brokers' Kafka: topics by their tenant's names. client.py is the only module that imports confluent_kafka."""
