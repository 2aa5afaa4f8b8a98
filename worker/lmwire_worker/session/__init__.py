"""The wire: sessions, requests in flight, and the queue of output."""
