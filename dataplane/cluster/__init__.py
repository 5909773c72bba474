"""What a broker knows of the others: metadata, registration, configurations, and the door to ZooKeeper.

metadata                     brokers, topics and leaders, as the controller tells them
membership                   this broker's registration
paths                        Kafka's nodes in ZooKeeper and the JSON in them (pure)
zookeeper zookeeper_reads    the door over kazoo; the reads of a turn go together
beside                       changing what stands beside an instance's specification
watching in_order            follow a node; pieces of work in the order in which they came
topic_configs config_writer  overrides as this broker knows them, and changing them
topic_settings topic_policy  what can be set for a topic, and what of it a tenant may set (pure)
broker_settings alterations  a broker's configuration; what an alteration makes of overrides (pure)
setting_docs                 a sentence on each configuration
"""
