"""What every Spark program of ours needs of Spark: a Java, jars, a session, and the Kafka client that the JVM has.

    session   a session: which Java, which options, and how it ends
    jars      what comes from Maven Central, once
    submitted what a program hears of the JVM that spark-submit has given it
    archive   classes as the JVM has loaded them before, which makes starts quick
    errors    its errors in a line
    identification   how Kafka's client in the JVM shows whose it is
    topics    what Kafka says of a topic, asked by the client in the JVM
    kept      a process that ends with whatever it has started, and with who has started it (keeper, between the two)
    delta     Delta Lake tables: a session's options, whether a table is there, what its commits say

The programs are `controlplane.metering.pipeline` (usage, reports) and `controlplane.lake` (topics into Delta tables). No Django
in here: they run with Spark's own life cycle.
"""
