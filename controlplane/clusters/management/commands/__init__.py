"""`manage.py cluster_credential`, `zookeeper_login`, `zookeeper_secure`."""
