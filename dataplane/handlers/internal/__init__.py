"""For other brokers, the controller and operators: never on a tenant's listener."""
