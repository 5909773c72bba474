"""Alarms: rules, the machine, evaluation, messages, their REST."""
