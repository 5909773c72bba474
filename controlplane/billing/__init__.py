"""What tenants pay: a price plan as a declaration, pure rating, bills so far and frozen invoices."""
