"""The generation of one chat completion, whole or as a stream."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from msgspec import UNSET, UnsetType

from lmwire import MessageDict
from lmwire_protocol import events

from ...errors import RenameField
from ...http.context import RequestContext
from ...http.endpoint import Json, Streamable
from ...inference.call_ids import OPENAI_PREFIX, restore_call_ids
from ...inference.chat import count_prompt_tokens, render_prompt, run_chat
from ...inference.generation import Generation
from ...inference.media import new_media
from ...inference.timings import TimingsSoFar
from ..messages import wire_messages
from ..request_fields import usage_chunk, usage_so_far
from ..response_fields import ProgressTracker, new_identity
from .request import ChatRequest, chat_options, client_field, is_for_llama_cpp, wants_logprobs
from .response import ChoiceParts, Verbose, chat_completion, collect_choices
from .stream import ChatStreamEncoder

IMAGE_ANSWER_TOKENS: Final = 2048
"""Maximum length of an answer about new images, if the request has none."""


class ChatGeneration(Streamable[ChatRequest]):
    """The answers to one chat completion request."""

    def __init__(self, context: RequestContext, body: ChatRequest) -> None:
        super().__init__(context, body)
        self.messages = wire_messages(body.messages)
        restore_call_ids(self.messages, OPENAI_PREFIX)
        self._options: Any = chat_options(body)
        has_new_images = any(part["type"] == "image" for _, part in new_media(self.messages))
        self._max_tokens = IMAGE_ANSWER_TOKENS if has_new_images else None
        self.identity = new_identity("chatcmpl", body.model, context.state.settings)
        so_far = usage_so_far(body)
        timings = TimingsSoFar() if body.timings_per_token else None
        self.encoder = ChatStreamEncoder(
            self.identity,
            usage=usage_chunk(body, context.state.settings),
            so_far=so_far,
            has_functions=body.functions is not None,
            reasoning_field=context.state.settings.reasoning_field,
            is_for_llama_cpp=is_for_llama_cpp(body),
            timings=timings,
        )
        self._progress = ProgressTracker(
            is_wanted=bool(body.return_progress), encode=self.encoder.waiting, so_far=so_far, timings=timings
        )
        self.waiting = self._progress.waiting

    async def whole(self) -> Json:
        """Return the whole chat completion."""
        self.encoder.verbose = await self._verbose()
        async with self.generation(self.messages) as generation:
            choices = await self.choices(generation)
        return self.completion(choices, generation.result)

    def completion(self, choices: list[ChoiceParts], result: events.ResultDone) -> Json:
        """Return the chat completion of whole answers.

        Args:
            choices: The answers.
            result: The worker's report.
        """
        whole = chat_completion(
            self.identity,
            choices,
            result,
            has_functions=self._body.functions is not None,
            reasoning_field=self._context.state.settings.reasoning_field,
            has_timings=is_for_llama_cpp(self._body),
            verbose=self.encoder.verbose,
        )
        return Json(whole)

    async def _verbose(self) -> Verbose | UnsetType:
        """Return the prompt, if the request wants to see it."""
        if not self._body.verbose:
            return UNSET
        prompt = await render_prompt(
            self._context,
            self._body.model,
            self.messages,
            self._options,
            rename=lambda field: client_field(self._body, field),
        )
        return Verbose(prompt=prompt)

    async def count_tokens(self) -> int:
        """Return the number of the prompt's tokens. Nothing is generated."""
        return await count_prompt_tokens(
            self._context,
            self._body.model,
            self.messages,
            self._options,
            rename=lambda field: client_field(self._body, field),
        )

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the chat completion's chunks as they come."""
        self.encoder.verbose = await self._verbose()
        async with self.generation(self.messages, progress_of=0) as generation:
            async for batch in generation:
                if frames := self._progress.begin_answer() + self.encoder.deltas(batch, 0):
                    yield frames
            self.encoder.note_end(0, generation.result)
        yield self.encoder.end(generation.result)

    async def choices(self, generation: Generation) -> list[ChoiceParts]:
        """Read a generation to its end, and return its answers."""
        deltas = [delta async for batch in generation for delta in batch]
        return collect_choices(deltas, await generation.answers(), logprobs=wants_logprobs(self._body))

    def generation(
        self, messages: Sequence[MessageDict], rename: RenameField | None = None, *, progress_of: int | None = None
    ) -> AbstractAsyncContextManager[Generation]:
        """Start the answer to a conversation.

        Args:
            messages: The conversation.
            rename: Maps its field paths to those of the client's conversation; None if they are the same.
            progress_of: The number of the prompt whose progress is reported; None to report none.
        """
        progress: dict[str, Any] = {} if progress_of is None else self._progress.options(progress_of)
        return run_chat(
            self._context,
            self._body.model,
            messages,
            {**self._options, **progress},
            rename=lambda field: client_field(self._body, (rename(field) if rename else None) or field),
            checks_media=self._body.strict_media is not False,
            max_tokens=self._max_tokens,
        )
