"""The wire's side: sessions, requests in flight, and the output queue."""
