"""Processes for tests: workers, hosts that go away, and workers that misbehave."""
