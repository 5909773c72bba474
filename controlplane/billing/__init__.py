"""What tenants pay: a price plan as a declaration, pure rating, bills so far and frozen invoices.

plans money         price plans as declarations, dated; Decimal all the way
rating adjustments  from sizes and usage to the lines of a bill; usage that became known late (pure)
documents chain     what a bill is computed from, as JSON; invoices sealed one after the other (pure)
waiting closing     which months are due and which wait; bills become invoices
verification        invoices computed again
metrics             invoices that wait or fail, for an alarm
"""
