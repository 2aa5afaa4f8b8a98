"""Program that measures the Python client for `lmwire bench hosts`: `python bench_host.py STREAMS COMMAND…`.

It starts the command as a worker. It prints the time to the first token, and then how many events come in how long.
"""

import asyncio
import json
import sys
from time import perf_counter

import lmwire


async def main() -> None:
    """Measure, and print the results as JSON."""
    streams, *command = sys.argv[1:]
    started = perf_counter()
    first_token_s: float | None = None
    async with lmwire.AsyncWorker(command) as worker:
        await worker.load("mock")
        async for _ in worker.generate("first"):
            first_token_s = first_token_s or perf_counter() - started
        began = perf_counter()
        counts = await asyncio.gather(*(_count(worker) for _ in range(int(streams))))
        seconds = perf_counter() - began
    assert first_token_s is not None
    print(json.dumps({"first_token_ms": first_token_s * 1e3, "events": sum(counts), "seconds": seconds}))


async def _count(worker: lmwire.AsyncWorker) -> int:
    """Read a stream, and return the number of its tokens."""
    return sum([len(delta.token_ids) async for delta in worker.generate("burst")])


if __name__ == "__main__":
    asyncio.run(main())
