"""The body of a request, from the bytes that arrive to a typed value, within limits that hold before each step."""
