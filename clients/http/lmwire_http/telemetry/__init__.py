"""The server's log, metrics and traces."""
