"""The way to a worker: its process, its pipes and the callers that wait for its events."""
