"""Messages of a topic as its tenant sees them: looking, one test message, deleting up to an offset. Nothing is kept here.

looking      one look over partitions, older or newer, with a filter and within a room: pure but for its reader
window       which partitions a look goes through, where there are many or some are away (pure)
cursors      where a look goes on, as text
cutting      a page's values in at most so many bytes; what a role may not read
sources      which offsets come from the topic, and which, expired there, from a load's table (pure)
expired      finds that table, and says so where it cannot be read
downloads    a page as a file: JSON lines or CSV
by_schema    what schemas make of messages, to show it and to seek in it
debts        who has used up the bandwidth waits
selectors    a page, one message whole
services     produce one, delete records: with whose it is, the limits and the audit trail
outlook taking     what these would do: the dry runs; whether a topic takes a message
api serializers    REST
"""
