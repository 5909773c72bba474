"""What every coordinator has, whatever it coordinates (consumer groups, transactions).

It keeps things by name in the partitions of one internal topic, and serves each partition while this broker leads it.

    runtime (elect, load, resign; events to effects)
       |-- shard      one partition while it is led: loading or serving, the requests that wait, the contents
       |-- machine    what a coordinator brings: contents that replay its records, a pure function that handles its events
       |-- log        appends with acks=all; loading reads it back at an election
       |-- deadlines  timers that are moved far more often than they ring
       `-- portions   a few answers, or deadlines, a turn

Pure: `effects` (what a state machine asks for), `errors` (what clients are told of the log's), `placement` (which partition),
`versioned` (the bytes of records).
Nothing here knows what is coordinated.
"""
