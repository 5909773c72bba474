"""The same requests to one of our brokers and to a real Apache Kafka 3.9: answers compared field by field."""
