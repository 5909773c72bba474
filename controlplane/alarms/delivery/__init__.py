"""Messages of alarms on their way to receivers, by e-mail or webhook.

outbox    messages are written with what they are about, claimed, sent, tried again
limits    how often an alarm is told, how many messages a receiver gets
words     what a message says, as JSON and as plain text (pure)
signing   the signature of a webhook (pure)
targets   what the address of a webhook may be (pure)
posting   the one door to receivers' servers
secrets   what is secret of webhooks, sealed in their rows: what signs, and the path of the address
"""
