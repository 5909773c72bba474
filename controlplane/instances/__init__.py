"""The thing tenants buy: its wanted state, and the machinery that makes brokers serve it.

validation whitelist  what may be bought; addresses as tenants write them (pure)
spec                  from what was bought to what brokers read (pure)
plan                  wanted, published and applied compared: the next step (pure)
reconcile             observes, asks `plan`, does the step; a round over all instances
lifecycle             its end: isolated, restored, destroyed, by its tenant or by the clock
provisioning          the steps of creating, updating, isolating, restoring and deleting
history               sizes over time, for the bill
"""
