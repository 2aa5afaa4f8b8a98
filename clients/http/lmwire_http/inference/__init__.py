"""Requests to workers on behalf of HTTP requests: generations, leases and media inputs, for every API."""
