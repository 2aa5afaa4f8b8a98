"""The worker: one process that owns one MLX model and serves it over its pipes.

The parts, in the order a request meets them (arrows are threads' hand-overs):

    reader → session (v1 or bridge) → request registry ⇒ scheduler → model runner ⇒ output queue → writer
                                                         lifecycle monitor: signals, hang-up, deadlines

`engine/interface.py` is the contract between the scheduler, which knows no model library, and the model runners, which
do not know the wire.
"""
