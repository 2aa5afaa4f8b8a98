"""The command line of `lmwire serve`."""
