"""Sampling: from the logits of a batch to its next tokens. Knows no model."""
