"""`manage.py audit_chain`."""
