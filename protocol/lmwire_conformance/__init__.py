"""The conformance kit: it tests a worker or a host in any language against PROTOCOL.md, over real pipes.

It needs lmwire_protocol, with its msgspec, and the standard library. `worker` tests workers, `host` tests hosts, and
both report their results with `report`.
"""
