"""POST /v1/messages/count_tokens: what /v1/messages reads of a conversation, in tokens, without an answer.

The marks that `thinking` puts behind the prompt are counted, and a model that cannot think refuses to be made to.
"""

from typing import Final

from msgspec import Struct

from ..errors import told
from ..http.context import Call
from ..http.endpoint import Endpoint
from ..http.error_formats import ANTHROPIC
from ..http.replies import Json
from .conversation import Conversation
from .request_options import prompt_options
from .request_schema import Prompt


class TokenCount(Struct):
    """How long a prompt is."""

    input_tokens: int


async def count_tokens(call: Call, body: Prompt) -> Json:
    """Serves /v1/messages/count_tokens."""
    conversation, options = Conversation(body), prompt_options(body)
    call.model = body.model
    prompt = [options.get("tools"), *conversation.messages]
    with told(conversation.rename):
        async with call.service.pool.lease(body.model, prompt=prompt) as lease:
            call.model = lease.name
            count = await lease.worker.count_tokens(conversation.messages, prefix=conversation.prefix, **options)
    return Json(TokenCount(count))


COUNT_TOKENS: Final = Endpoint(
    method="POST",
    path="/v1/messages/count_tokens",
    summary="Count the tokens of a conversation",
    serve=count_tokens,
    dialect=ANTHROPIC,
    body=Prompt,
    reply=TokenCount,
)
