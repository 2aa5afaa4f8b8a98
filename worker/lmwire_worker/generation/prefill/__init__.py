"""Choose the chunks of a prefill, by the measured durations of earlier steps."""
