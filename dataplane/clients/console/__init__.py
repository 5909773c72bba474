"""`python -m dataplane.clients.console`: topics, and messages by hand.

__main__ commands           arguments, exit status; which function does what
connection                  address and properties of the clients
topics producing consuming  what it can do
failures                    one sentence and an exit status
"""
