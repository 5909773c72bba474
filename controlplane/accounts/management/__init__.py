"""`manage.py seal_webhook_secrets_anew`."""
