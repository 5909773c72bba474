"""The local stack: `manage.py up` starts, watches and stops every process of Sluice on one machine."""
