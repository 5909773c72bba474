"""What usage costs, as rules. Pure.

plans money         price plans as declarations, dated; Decimal all the way
rating adjustments  from sizes and usage to the lines of a bill; usage that became known late
documents           what a bill is computed from, as JSON
"""
