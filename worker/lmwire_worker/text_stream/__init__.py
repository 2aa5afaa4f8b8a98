"""One answer's text as it grows: tokens become text, strings are matched in it, log-probabilities follow it.

Importing this package imports no model library: the mock uses the parts that need none.
"""
