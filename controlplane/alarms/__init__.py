"""Alarms of instances: a rule watches a health reason or a figure, and people and programs are told when it holds.

rules       what can be watched, and what a rule may say (pure)
machine     ok, pending, firing, no data: what one look makes of an alarm (pure)
readings    what is watched, read for many instances at once
evaluation  every 30 s: readings through the machine; changes, events and messages in one transaction
models      rules with their state, their events, receivers, messages; spells of throttling
services selectors  rules and receivers are made and changed; what is shown of them
receivers   who is told, and by what secret; addresses are confirmed
events      what an event of an instance is, and how those of one source are read
sources     everything that knows of events
throttling  intervals in which clients waited, joined to spells
timeline    events of an instance in time order, over pages
upkeep      what is old goes
tasks       evaluation, delivery and upkeep, by the clock
api serializers  their REST
delivery/   messages to receivers: how they read, are signed, sent and tried again
"""
