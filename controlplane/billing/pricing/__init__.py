"""What usage costs, as rules: money, plans, rating, adjustments, and the document that a bill is computed from. Pure."""
