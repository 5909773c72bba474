"""Members of one group in three languages, and what they must not do.

`librdkafka.py`, `Member.java` and `kafkajs.js` are programs: each joins a group, commits what it has read, and says on standard
output what happened, in seconds of the machine's monotonic clock:

    assigned T P,P…         partitions came, at this time; of an incremental assignment those that came
    lost P,P…               partitions went
    begin P OFFSET          the first record that was read of a partition since it came
    got P FIRST LAST        records were taken
    committed T P OFFSET    a commit was asked for at T, and has been acknowledged
    refused WHY             a commit was not

`kept` is what must hold of all that the members of a group have said; `running` keeps processes alive; `rounds` kills them.
"""
