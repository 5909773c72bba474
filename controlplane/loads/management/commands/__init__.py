"""`manage.py lake_runner`."""
