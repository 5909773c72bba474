"""`manage.py seal_keys_anew`."""
