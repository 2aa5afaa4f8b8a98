"""The HTTP server and its clients."""
