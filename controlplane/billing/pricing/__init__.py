"""What usage costs, as rules. Pure.

plans money         price plans as declarations, dated; Decimal all the way
rating adjustments  from sizes and usage to the lines of a bill; usage that became known late
forecast            what a month will have cost at its end
what_if             what it would have cost at another size or under another plan
sharing             a bill by topic, to the cent
documents           what a bill is computed from, as JSON
"""
