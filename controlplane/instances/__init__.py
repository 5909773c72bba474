"""The thing tenants buy: its wanted state, and the machinery that makes brokers serve it.

validation            what may be bought (pure)
windows               when in a week an instance's clients may be disturbed (pure)
spec                  from what was bought to what brokers read (pure)
plan                  wanted, published and applied compared: the next step (pure)
reconcile             observes, asks `plan`, does the step; a round over all instances
lifecycle             its end: isolated, restored, destroyed, by its tenant or by the clock
telling letters       whom mails about an instance go to, and what they say (the second is pure)
provisioning          the steps of creating, updating, isolating, restoring and deleting
history               sizes over time, for the bill
leftovers             rows about topics that are gone
kafka_changes         what Kafka clients have changed, into the audit trails
"""
