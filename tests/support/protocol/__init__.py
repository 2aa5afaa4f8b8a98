"""The protocol's documents, vectors, lines and mutants."""
