"""Structured output: constrains answers token by token to a format, to tool calls, and to a reasoning budget.

A request's grammar covers its whole answer: any reasoning, then text of the format or tool calls. In each step, the
constrained rows of a batch get a bit mask of allowed tokens. llguidance compiles and matches the grammars.
"""
