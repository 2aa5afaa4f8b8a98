"""Loads a model of any kind: finds out the kind, and passes the load on to that kind's loader."""
