"""`manage.py second_factor_off`."""
