"""What operators ask of the controller, by request or by a node in ZooKeeper."""
