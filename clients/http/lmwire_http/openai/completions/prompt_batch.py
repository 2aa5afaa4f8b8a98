"""A context for completions, on its way to the workers: each prompt is a request of its own, and they run together."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing
from functools import partial
from typing import Final, TypeAlias

from lmwire import Answer
from lmwire_protocol import events

from ...http.context import RequestContext
from ...inference.generation import Batch, Generation, generation
from .merge_streams import merged
from .request_schema import CompletionBody, completion_options, prompts_of, renamed

_AT_ONCE: Final = 32
"""Prompts of one context that run together, so that it leaves room for others."""

Streamed: TypeAlias = tuple[int, Batch | events.ResultDone]
"""What came for the prompt of this number: pieces, or its end."""
Whole: TypeAlias = tuple[int, list[Answer], events.Usage]
"""The answers to the prompt of this number."""


class Asking:
    """What is asked, of which model, and how.

    Raises:
        ApiError: it cannot be.
    """

    def __init__(self, context: RequestContext, body: CompletionBody) -> None:
        self._context, self._body = context, body
        self._prompts = prompts_of(body)
        self._options = completion_options(body)
        self._slots = asyncio.Semaphore(_AT_ONCE)

    @property
    def n(self) -> int:
        """Choices of each prompt."""
        return self._body.n or 1

    @property
    def echoed(self) -> list[str]:
        """What goes in front of the choices of each prompt; empty for nothing."""
        return [prompt if self._body.echo and isinstance(prompt, str) else "" for prompt in self._prompts]

    async def streamed(self) -> AsyncGenerator[Streamed, None]:
        """What comes for all prompts, as it comes. Raises ApiError."""
        async with aclosing(merged([self._stream(number) for number in range(len(self._prompts))])) as parts:
            async for part in parts:
                yield part

    async def answers(self) -> list[Whole]:
        """What has come in the end, in the prompts' order. Raises ApiError."""
        async with aclosing(merged([self._answers(number) for number in range(len(self._prompts))])) as wholes:
            return sorted([whole async for whole in wholes], key=lambda whole: whole[0])

    async def _stream(self, number: int) -> AsyncIterator[Streamed]:
        async with self._slots, self._generation(number) as generation:
            async for batch in generation:
                yield number, batch
            yield number, generation.result

    async def _answers(self, number: int) -> AsyncIterator[Whole]:
        async with self._slots, self._generation(number) as generation:
            yield number, await generation.answers(), generation.result.usage

    def _generation(self, number: int) -> AbstractAsyncContextManager[Generation]:
        prompt = self._prompts[number]
        return generation(
            self._context,
            self._body.model,
            lambda worker: worker.generate(prompt, **self._options),
            prompt=[prompt],
            rename=partial(renamed, self._body, number),
            n=self.n,
        )
