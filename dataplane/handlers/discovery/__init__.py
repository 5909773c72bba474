"""What a client asks first: versions, brokers, topics, who it is."""
