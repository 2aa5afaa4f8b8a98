"""Real clients of the HTTP server, and what the tests record of them."""
