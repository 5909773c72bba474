"""`manage.py usage_cap`."""
