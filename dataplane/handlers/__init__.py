"""What each API does: one file per family, found through the one table in `table.py`.

table                                    every API: versions, listeners, function
context outcome                          what a handler is given, and what it may reply: now, later, or the end
ownership authorized                     whose a topic is; what a client may do, as bits
awaited_topic                            a coordinator's topic, made when it is needed
transaction_charges transaction_answers  what transactions leave in the log, paid by their instance; what offsets are told
records groups transactions admin discovery internal
                                         the handlers, by what is asked
"""
