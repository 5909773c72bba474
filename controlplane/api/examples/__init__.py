"""Examples of the published schema: one of each body that a call takes, and of each answer that it gives.

bodies   requests, by the name of their schema, as somebody would write them
words    what members of answers are called and hold, by their names
making   an answer from its schema and the words; the hook that puts all of them into the document
"""
