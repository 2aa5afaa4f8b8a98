"""lmwire's Python client."""
