"""Holes in security that tests must find: planted in a copy of the code one after the other, `python -m tests.planted`.

holes          what each is, where, and which test finds it (a table)
planting       a copy of the code, and a hole in it
__main__       each hole in turn; the report
"""
