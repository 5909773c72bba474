"""What tenants pay: a price plan as a declaration, pure rating, bills so far and frozen invoices.

pricing          what usage costs, as rules (pure)
chain            invoices sealed one after the other (pure)
waiting closing  which months are due and which wait; bills become invoices
crediting        credit notes: a part of an invoice given back
verification     invoices computed again
statements       a month of an organisation: its invoices and credit notes, added up
costs            cost of a month so far, its forecast, its cost by topic
exports          invoices, credit notes and statements as PDF and as FOCUS rows (pure)
plan_api         the price plan by REST
statement_api    statements by REST
downloads        files as HTTP answers
metrics          invoices that wait or fail, for an alarm
"""
