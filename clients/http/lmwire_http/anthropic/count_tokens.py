"""POST /v1/messages/count_tokens: what /v1/messages reads of a conversation, in tokens, without an answer.

The marks that `thinking` puts behind the prompt are counted, and a model that cannot think refuses to be made to.
"""

from typing import Final

from msgspec import Struct

from ..errors import translate_worker_errors
from ..http.context import RequestContext
from ..http.endpoint import Endpoint
from ..http.error_formats import ANTHROPIC_ERRORS
from ..http.replies import Json
from .conversation import Conversation
from .request_options import prompt_options
from .request_schema import CountTokensRequest


class TokenCount(Struct):
    """How long a prompt is."""

    input_tokens: int


async def count_tokens(context: RequestContext, body: CountTokensRequest) -> Json:
    """Serves /v1/messages/count_tokens."""
    conversation, options = Conversation(body), prompt_options(body)
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
    summary="Count the tokens of a conversation",
    handler=count_tokens,
    error_format=ANTHROPIC_ERRORS,
    request_type=CountTokensRequest,
    response_type=TokenCount,
)
