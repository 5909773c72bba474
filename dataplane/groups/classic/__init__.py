"""The state machine of a classic group, pure.

model events       what a group is; what happens to it, and what follows
state              `handle` decides, `apply` replays
joining rebalance  the four ways into a group; moves that all of them share
"""
