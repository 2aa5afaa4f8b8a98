"""Responses as their callers read them: streams, and the answers and vectors assembled from them."""
