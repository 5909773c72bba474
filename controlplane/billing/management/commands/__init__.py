"""`manage.py up` and what it calls."""
