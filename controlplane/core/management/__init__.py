"""`manage.py secrets`."""
