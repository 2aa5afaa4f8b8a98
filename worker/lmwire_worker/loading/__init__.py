"""Load a model of any kind: find out the kind, and pass the load on to that kind's loader."""
