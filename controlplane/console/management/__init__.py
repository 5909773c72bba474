"""`manage.py words`."""
