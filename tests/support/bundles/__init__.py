"""Bundles for tests."""
