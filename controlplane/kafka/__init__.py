"""Topics as tenants see them, through the cluster itself. client.py is the only module that imports confluent_kafka."""
