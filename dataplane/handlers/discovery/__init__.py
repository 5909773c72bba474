"""What a client asks first: versions, brokers, topics, who it is.

api_versions sasl                           what a listener answers; how clients say who they are
metadata topic_partitions describe_cluster  brokers, topics and leaders, as a session sees them
"""
