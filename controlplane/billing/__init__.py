"""What tenants pay: a price plan as a declaration, pure rating, bills so far and frozen invoices.

pricing          what usage costs, as rules (pure)
chain            invoices sealed one after the other (pure)
waiting closing  which months are due and which wait; bills become invoices
verification     invoices computed again
metrics          invoices that wait or fail, for an alarm
"""
