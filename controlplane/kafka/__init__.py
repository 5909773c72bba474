"""The door to the brokers' Kafka. Each call says which cluster it is for.

client    the admin protocol over librdkafka: the only module that imports confluent_kafka
patience  asks again while a cluster changes its controller
topics    an instance's topics by their tenant's names
"""
