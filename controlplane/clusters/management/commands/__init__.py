"""`manage.py cluster_credential`."""
