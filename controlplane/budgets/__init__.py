"""Budgets: an amount for a month, of an organisation or of one instance, and who is told when it is being used up.

rules       which thresholds are reached, and which of them are told (pure)
models      budgets, whom they tell, what they told
services    they are made, changed and deleted
evaluation  every five minutes: costs against amounts; alerts and their messages in one transaction
selectors   budgets with how they stand
tasks       evaluation, by the clock
api serializers  their REST
"""
