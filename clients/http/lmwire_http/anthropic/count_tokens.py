"""POST /v1/messages/count_tokens: the number of tokens in a conversation's prompt.

The count includes the tokens that `thinking` adds to the prompt. A model without reasoning rejects `enabled`.
"""

from typing import Final

from msgspec import Struct

from ..http.context import RequestContext
from ..http.endpoint import Endpoint, Json
from ..http.error_formats import ANTHROPIC_ERRORS
from ..inference.chat import count_prompt_tokens
from ..inference.options import TEMPLATE_ALIASES
from .conversation import Conversation
from .request_options import prompt_options, thinking_of
from .request_schema import CountTokensRequest
from .tool_set import ToolSet


class TokenCount(Struct):
    """The length of a prompt."""

    input_tokens: int


async def count_tokens(context: RequestContext, body: CountTokensRequest) -> Json:
    """Handle a request to /v1/messages/count_tokens."""
    conversation = await context.beside_loop(Conversation, body)
    tools = await context.beside_loop(ToolSet, body, context.unknown_fields)
    options = {**prompt_options(body, tools, context.unknown_fields), "prefix": conversation.prefix}
    count = await count_prompt_tokens(
        context,
        body.model,
        conversation.messages,
        options,
        rename=lambda field: tools.client_field(field) or conversation.client_field(field),
    )
    return Json(TokenCount(count))


COUNT_TOKENS: Final = Endpoint(
    method="POST",
    path="/v1/messages/count_tokens",
    summary="Count the tokens of a conversation.",
    handler=count_tokens,
    error_format=ANTHROPIC_ERRORS,
    request_type=CountTokensRequest,
    aliases={**TEMPLATE_ALIASES, "enable_thinking": thinking_of},
    response_type=TokenCount,
)
