"""Copies topics of any number of clusters into one: `python -m dataplane.clients.mirror mirror.toml`.

A mirror is a consumer of its sources, as the documents say; the clusters know nothing of each other and may differ in size. A
message keeps its partition, key, value, headers and time. How far each partition was copied stands in a *checkpoint topic* of
the target, written after the data.

**Delivery.** Exactly once where the target has transactions: messages and checkpoints are in one, so that after any failure
both say the same. Where it has none, at least once: after a failure, in a run or between two, what stands in the target
behind the checkpoint is compared with what comes next at the source, and what is there already is not sent again
(`recovery`).

__main__ commands    arguments, exit status; run, status, compare
config               mirror.toml
runner               a thread for each source, until it is stopped
delivery             exactly once or at least once: beginning, committing, going on after a failure, who is fenced
copying progress     one source's partitions, a round at a time; how far each is
putting recovery     into the target, and remembered; what a restart without transactions finds out there: pure
transacting          a producer with a transactional id
appending            one batch to the target, once, without
offset_map           where a message of the source is in the target: pure
checkpoints          how far it is, kept in the target
topics admin         topics made, grown and configured as at the source; the requests for it
groups               committed offsets of groups, translated
reading              a partition from one end to the other
comparing            whether two clusters have the same
metrics status       lag, rates and offsets: as text and on a port, and in a topic of the target, for its console
"""
