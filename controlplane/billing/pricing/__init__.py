"""What usage costs, as rules. Pure.

plans money         price plans as declarations, dated; Decimal all the way
rating adjustments  from sizes and usage to the lines of a bill; usage that became known late
prepaid_prices      price lists for what is paid in advance, dated
prepaid             what was paid in advance: terms, what grows within them, what is paid back
elastic             what was carried above the bought bandwidth
credits             what is given back where the bought bandwidth could not be had
currencies          no bill adds up two of them
taxes               the tax on all of it
credited_taxes      how much of it is in what a credit note gives back
forecast            what a month will have cost at its end
what_if             what it would have cost at another size or under another plan
sharing             a bill by topic, to the cent
documents           what a bill is computed from, as JSON
"""
