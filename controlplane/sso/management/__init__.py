"""`manage.py sso_release`."""
