"""Proves a worker or a host right, in whatever language it is written: it plays the other side over real pipes.

It needs lmwire_protocol, with its msgspec, and the standard library. `report.py` is what its two halves share.
"""
