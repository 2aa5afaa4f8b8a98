"""POST /v1/messages/count_tokens: the number of tokens in a conversation's prompt.

The count includes the tokens that `thinking` adds to the prompt. A model without reasoning rejects `enabled`.
"""

from typing import Final

from msgspec import Struct

from ..errors import translate_worker_errors
from ..http.context import RequestContext
from ..http.endpoint import Endpoint
from ..http.error_formats import ANTHROPIC_ERRORS
from ..http.replies import Json
from ..inference.server_defaults import apply_server_defaults
from .conversation import Conversation
from .request_options import prompt_options, thinking_of
from .request_schema import CountTokensRequest


class TokenCount(Struct):
    """The length of a prompt."""

    input_tokens: int


async def count_tokens(context: RequestContext, body: CountTokensRequest) -> Json:
    """Handle a request to /v1/messages/count_tokens."""
    conversation, options = Conversation(body), prompt_options(body)
    apply_server_defaults(options, context.state.settings)
    context.model = body.model
    prompt = [options.get("tools"), *conversation.messages]
    with translate_worker_errors(conversation.client_field):
        async with context.state.pool.lease(body.model, prompt=prompt) as lease:
            context.model = lease.model_id
            count = await lease.worker.count_tokens(conversation.messages, prefix=conversation.prefix, **options)
    return Json(TokenCount(count))


COUNT_TOKENS: Final = Endpoint(
    method="POST",
    path="/v1/messages/count_tokens",
    summary="Count the tokens of a conversation.",
    handler=count_tokens,
    error_format=ANTHROPIC_ERRORS,
    request_type=CountTokensRequest,
    aliases={"enable_thinking": thinking_of},
    response_type=TokenCount,
)
