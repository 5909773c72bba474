"""Metering: what every topic took in, gave out and stored on this broker, counted exactly and written to ``__usage``.

    counters        one memory-mapped file per boot: survives SIGKILL
    usage           one topic's counters: the hot path
    meter           all topics of the broker; what is due to be told, and under which hour
    moved           what topics have moved since it was asked last, for windows of ten seconds
    instances       what belongs to no topic: wire bytes, requests, time of the loop, waiting
    users           who of an instance moved it, by the name that they signed in with
    previous_boots  the last words of earlier boots, read from their files
    publisher       records to the leaders of `__usage`, acks=all
    hours           UTC hours as numbers and as text

What is counted, once each:

* **Produced**: record bytes (12 + batchLength), on the broker that took them as the leader, at the moment in which it
  learns that they are committed: its high watermark passes them, as the leader or, if it was deposed in between, as a
  follower that still has them (`replication.replica.uncommitted`). So a change of leaders counts nothing twice and forgets
  nothing, whatever each broker knew of the high watermark. (Rejected: the new leader counts what it commits. A
  follower's high watermark is behind the leader's, so it would count again what the old leader has.) What is counted
  stands in the file before the producer is told. A duplicate is never appended, hence never counted.
* **Consumed**: bytes of batches that left by a tenant's socket. A batch that begins before the offset asked for is sent
  whole and counts whole. When a connection ends in the middle of an answer, what has left of it counts.
* **Stored**: the integral of the bytes of every replica here over time, in byte-seconds.
* **On the wire, requests, the loop, waiting**: of an instance, read once a minute of counters that are there anyway. No price
  is made of them, and they are not kept in the file.

What a killed broker (SIGKILL) leaves uncounted: bytes in flight, that is, appended there and not committed when it died
(also if the next leader commits them), and up to a second of storage. Nothing that it acknowledged with acks=all, and
nothing is ever counted twice: the difference is in the customer's favour. An orderly stop waits until what it handed
over is committed. A power cut may lose what was counted since the last record that was acknowledged.
"""
