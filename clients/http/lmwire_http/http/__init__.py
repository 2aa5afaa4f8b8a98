"""The HTTP layer that every API shares: endpoints, request handling, errors and access checks."""
