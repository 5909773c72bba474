"""What stands sealed in a row: secrets that the service itself has to know again, so that a hash will not do.

Whoever has the database, or a copy of it, has none of them: the keys are in a file of their own (`SLUICE_ENCRYPTION_KEYS_FILE`).
A sealed text is for one row and column; moved to another it does not open. docs/runbooks/encryption-keys.md is for operators.

keyring    the keys, sealing and opening
installed  the keys of this installation; a process that has none is told so at its start
fields     the field of a model, and whose a sealed text is
migrating  for migrations: what releases before have sealed otherwise
rotation   every sealed text of the database: sealed anew with the first key, or looked at
"""
