"""Run two requests at once with asyncio, and cancel one of them: python_async.py MODEL PROMPT."""

import asyncio
import sys

from lmwire import AsyncWorker


async def main(model: str, prompt: str) -> None:
    """Load the model, and run both requests in one batch."""
    async with AsyncWorker() as worker:
        await worker.load(model)
        whole = asyncio.create_task(worker.chat(prompt, max_tokens=200).text())
        async with worker.chat(prompt, ignore_eos=True) as endless:
            async for delta in endless:
                print(delta.text, end="")
                endless.cancel()
        print(f" ({endless.result.finish_reason})")
        print(await whole)


asyncio.run(main(*sys.argv[1:]))
