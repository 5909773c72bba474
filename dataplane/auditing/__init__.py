"""The audit of an instance's data plane: who connected, logged in, was refused or changed something, to its `__sluice_audit`.

auditing  who is told what has happened, by whoever knows of it, and when it is written
outcomes  which requests are audited, and what came of one (pure)
trail     records of one instance that wait to be written: few, not too often, denials of a kind together (pure)
topics    records to the instance's topic
"""
