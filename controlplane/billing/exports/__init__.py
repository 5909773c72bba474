"""An invoice as files that leave the service. Pure: the same invoice and names give the same bytes.

document   what an invoice says, as one value, in words for people
focus      as rows of FOCUS 1.2, and those as CSV
pdf fonts  as pages; which characters they can show
"""
