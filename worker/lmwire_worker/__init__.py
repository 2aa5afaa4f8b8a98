"""The worker: one process that owns one MLX model and serves it over its pipes.

The parts, in the order a request meets them (arrows are threads' hand-overs):

    reader → session (v1 or bridge) → registry ⇒ scheduler → lane ⇒ outbox → writer
                                                 watcher: signals, hang-up, deadlines

`lane.py` is the contract between the scheduler, which knows no model library, and the lanes, which know no wire.
"""
