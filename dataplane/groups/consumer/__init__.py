"""The state machine of a group of the consumer protocol (KIP-848), pure.

model events       what a group is; what happens to it, and what follows
records ledger     its records in `__consumer_offsets`, as values and as bytes; `apply`: what they make of a group
state              `handle`: one batch of records at a time, and what waits for it
clearing           what holds of records that are in doubt, in batches that fit
draft joining      what is made of some events; of those, heartbeats: who may speak, and what it says of a member
classic_members    members that speak the classic protocol; `embedded`: what consumers say to each other in it
conversion         a live group of the other protocol becomes one of this, and back
target             subscriptions, the group's epoch, the assignment that is wanted
reconciliation     how one member comes from what it has to what it shall have
epochs             who may commit, or ask for offsets as a member
assignors          `uniform` and `range`
patterns           regular expressions of subscriptions, matched in steps
"""
