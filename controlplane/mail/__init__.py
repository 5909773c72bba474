"""E-mail: one door to the mail server, and the outbox of what the service itself writes to people.

letter    what a mail says
sender    the door: plain text, one receiver at a time; alarms send through it as well
outbox    mails are written with what they are about, claimed, sent, tried again
"""
