"""Transcripts of recordings, through mlx-audio.

`transcriber` is the interface of a speech model, which `whisper` and `parakeet` implement. `loader` opens a model,
`recording` resamples recordings for it, and `runner` serves requests.
"""
