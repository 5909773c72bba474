"""The state machine of a classic group, pure.

model events       what a group is; what happens to it, and what follows
members sharing    who is in it; a mapping of which a change copies little
state              `handle` decides, `apply` replays
joining rebalance  the four ways into a group; moves that all of them share
"""
