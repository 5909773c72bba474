"""The rules of flow control as pure functions and values: no clock, socket, thread or randomness.

allocate model         the rule by which a limit is divided, and its vocabulary
ledger limited spread  what the master knows; its rows; a row on all brokers
bucket                 how long a sender has to wait
shares matching        a limit among senders by max-min; which throttle rule holds for whom
fence                  storage of an instance, and the block when it is full
recorder over explain  who had to wait, how far above a limit, and why, in a sentence
"""
