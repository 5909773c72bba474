"""`make mutation`: whether the tests of the pure packages notice when the code is wrong.

mutmut makes copies of functions that are wrong in one place each (another operator, another number, an argument less) and
runs the tests that call the function. A copy that no test fails on has *survived*: a behaviour that nobody asserts, or a
change that changes nothing. `survivors.tsv` names those that were read, each with its reason; any other is a finding.

What it does not change: functions with decorators (properties too, but for static and class methods), constants of
modules and classes, and defaults that are computed.
"""
