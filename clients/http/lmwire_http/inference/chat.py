"""Requests to workers about a conversation: the answer to it, and the length of its prompt."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

from lmwire import AsyncStream, AsyncWorker, MessageDict, TemplateOptions

from ..errors import RenameField, translate_value_errors, translate_worker_errors
from ..http.context import RequestContext
from ..pool import Lease
from .context_fit import fit_conversation
from .generation import Generation, run_generation
from .media import check_new_media, has_media
from .options import with_chat_defaults
from .template_support import drop_unknown_variables, drop_unsupported_reasoning

Options: TypeAlias = dict[str, Any]
"""Arguments of `lmwire.AsyncWorker.chat`."""


def run_chat(
    context: RequestContext,
    model: str,
    messages: Sequence[MessageDict],
    options: Options,
    *,
    rename: RenameField,
    checks_media: bool,
    fits_context: bool = False,
    max_tokens: int | None = None,
) -> AbstractAsyncContextManager[Generation]:
    """Start the answer to a conversation, and cancel it if the block ends early.

    Args:
        context: The request's context.
        model: The model's name in the request.
        messages: The conversation.
        options: The options that the request sets.
        rename: Maps field paths to those of the client.
        checks_media: Whether the model must take the new images and sounds.
        fits_context: Whether the oldest turns are left out of a conversation that the context cannot hold.
        max_tokens: The API's own limit of tokens; None if it has none.

    Raises:
        ApiError: The generation cannot start, or has failed.
    """

    async def start(lease: Lease, complete: Options) -> AsyncStream:
        if checks_media:
            check_new_media(messages, lease.model.capabilities, rename)
        await _drop_unsupported(context, options, complete, lease.worker, rename)
        if fits_context:
            fitting = await fit_conversation(lease.worker, messages, complete, lease.model.context_len)
            return lease.worker.chat(fitting, **complete)
        return lease.worker.chat(messages, **complete)

    return run_generation(
        context,
        model,
        with_chat_defaults(options, context.state.settings),
        start,
        prompt=[*options.get("tools", ()), *messages],
        rename=rename,
        capability="chat",
        has_media=has_media(messages),
        max_tokens=max_tokens,
    )


async def render_prompt(
    context: RequestContext, model: str, messages: Sequence[MessageDict], options: Options, *, rename: RenameField
) -> str:
    """Return the text of the prompt, special tokens included; see `count_prompt_tokens`."""
    async with lease_for_prompt(context, model, messages, options, rename=rename) as (lease, template):
        return (await lease.worker.tokenize(messages, **template)).text


async def count_prompt_tokens(
    context: RequestContext, model: str, messages: Sequence[MessageDict], options: Options, *, rename: RenameField
) -> int:
    """Return the number of tokens that the prompt of a chat with the same arguments has.

    Args:
        context: The request's context.
        model: The model's name in the request.
        messages: The conversation.
        options: The options that the request sets. Those that do not change the prompt are ignored.
        rename: Maps field paths to those of the client.

    Raises:
        ApiError: The worker cannot make the prompt.
    """
    async with lease_for_prompt(context, model, messages, options, rename=rename) as (lease, template):
        return await lease.worker.count_tokens(messages, **template)


@asynccontextmanager
async def lease_for_prompt(
    context: RequestContext, model: str, messages: Sequence[MessageDict], options: Options, *, rename: RenameField
) -> AsyncGenerator[tuple[Lease, Any]]:
    """Lease a worker that makes the prompt of a chat. It does not generate, so the request waits for no answer to end.

    Args:
        context: The request's context.
        model: The model's name in the request.
        messages: The conversation.
        options: The options that the request sets.
        rename: Maps field paths to those of the client.

    Yields:
        The lease, and the options that affect the prompt, as the client library takes them.

    Raises:
        ApiError: The worker cannot make the prompt.
    """
    complete = with_chat_defaults(options, context.state.settings)
    template: Any = {name: value for name, value in complete.items() if name in TemplateOptions.__annotations__}
    context.model = model
    with translate_worker_errors(rename), translate_value_errors(rename):
        prompt = [*options.get("tools", ()), *messages]
        async with context.state.pool.lease(
            model, prompt=prompt, client=context.client, has_media=has_media(messages)
        ) as lease:
            context.model = lease.model_id
            await _drop_unsupported(context, options, template, lease.worker, rename)
            yield lease, template


async def _drop_unsupported(
    context: RequestContext, options: Options, complete: Options, worker: AsyncWorker, rename: RenameField
) -> None:
    """Remove what the model cannot do, as far as the server ignores it.

    Args:
        context: The request's context.
        options: The options that the request sets.
        complete: Those with the operator's defaults, which change.
        worker: The worker with the model.
        rename: Maps field paths to those of the client.
    """
    await drop_unknown_variables(context, complete, worker)
    if options.get("reasoning") == "on":
        await drop_unsupported_reasoning(context, complete, worker, rename)
