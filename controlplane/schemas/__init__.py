"""Schemas of a topic's keys and values, by which messages in Avro or Protobuf are shown as JSON.

A tenant gives a schema for the keys of a topic, its values, or both; it is kept here, and nothing is asked of a schema registry.
What comes out is for people's eyes: it is bounded, and what does not fit the schema is said and shown as bytes.

values                 JSON values, how many may be made, what went wrong (pure)
framing                what a serializer puts before the content (pure)
avro_values            Avro: the Apache library reads schemas, and values are read here (pure)
protobuf_values        Protobuf, by what its compiler makes of a schema (pure)
compiler               looks at a schema that is given, in a process of its own
decoding               one schema, and what stands in a message by it
services               set, try, remove
selectors              of a topic, and its decoders
api serializers tasks  REST; schemas of topics that are gone
"""
