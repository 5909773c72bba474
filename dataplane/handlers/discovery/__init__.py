"""What a client asks first: versions, brokers, topics, who it is.

api_versions sasl                           what a listener answers; the way into the internal one
metadata topic_partitions describe_cluster  brokers, topics and leaders, as a session sees them
"""
