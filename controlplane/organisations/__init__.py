"""The life of an organisation: another name, other owners, and its end.

ownership     another name; an owner makes another member owner, and may step down
deletion      marked for deletion, taken back
obstacles     what keeps one from being deleted
removal       what the clock does: owners are told before the end, then what may go goes
kept          what of an organisation goes with it, and what stays: every kind of row
letters       what mails about it say (pure)
telling       to whom they go
serializers   its REST, with `api`
tasks         Celery's edge

It stands above all that an organisation has, since all of that has a say in its end.
"""
