"""What operators ask of the controller, by request or by a node in ZooKeeper.

reassignments        replicas move to other brokers (KIP-455)
requested_elections  ElectLeaders (KIP-460)
admin_nodes          the nodes by which tools ask without a request
"""
