"""Transcripts of recordings, with mlx-audio.

`listener` is what the lane asks of a model, `whisper` and `parakeet` are those that there are, and `lane` serves
requests with one.
"""
