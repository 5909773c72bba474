"""What people type. Forms know shapes; the rules are the services', whose refusals land beside the field."""
