"""What operators see of all brokers and instances at once, and over time: samples of brokers, and maps of heat.

measures   what a map can show, with its unit (pure)
heat       from numbers to levels and outlines that a page draws (pure)
models     a sample of each broker, each minute
services   taking them, forgetting them
selectors  brokers over time, instances over time, instances by broker
broker_state  how a broker is, and why, in words (pure)
listing    everybody's instances, organisations, operations; every broker
problems   what is the matter anywhere
serializers, api  REST of all that
"""
