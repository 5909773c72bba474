"""Invoices, credit notes and statements as files that leave the service. Pure: the same documents and names give the same bytes.

document         what an invoice says, as one value, in words for people
credit_note      the same of a credit note
focus            both as rows of FOCUS 1.2, and those as CSV
pdf fonts        an invoice as pages; which characters they can show
credit_note_pdf  a credit note as a page
statement        what a month of an organisation comes to, as one value
statement_pdf    the same as pages
"""
