"""The process itself: its pipes, signals, threads, temporary files and exits. Knows nothing of requests or models."""
