"""Requests that the mock refuses.

Each of its tokens is certain: no temperature, filter, penalty or bias makes another likelier, so it accepts them all.
It has no grammars, chat templates, weights for an adapter, or draft model. A rule of the scenario that matches such a
field provides the answer instead.
"""

from collections.abc import Collection, Sequence
from typing import Final

from lmwire_protocol import DEFAULT_MODEL, FEATURES, Chat, Generate, Load, Message, NamedTool, RequestError, Tokenize

from .prompts import CONTEXT_LEN, told_of
from .replies import Answer, Call

NEEDS_A_RULE: Final = (
    *("format", "chat_template", "template_args"),
    *("adapter_path", "draft_path", "kv_bits", "dtype", "chat_template_name", "tool_format"),
    *("reasoning_start", "reasoning_end", "generation_config"),
)
"""Fields that need a rule that matches on them."""


def features(vouched: Collection[str]) -> list[str]:
    """Return the features beyond protocol 1.0 that the mock serves.

    Args:
        vouched: Fields that rules match on, in the form `command.field`.
    """
    return [
        name
        for name in FEATURES
        if name != DEFAULT_MODEL and (name in vouched or name.partition(".")[2] not in NEEDS_A_RULE)
    ]


def check(request: Generate | Chat, answers: Sequence[Answer], vouched: Collection[str]) -> None:
    """Refuse a request that the scripted answers do not satisfy.

    Args:
        request: The request.
        answers: The answers that it would get.
        vouched: Fields that the rule of these answers matches on.

    Raises:
        RequestError: unsupported, invalid_request.
    """
    check_fields(request, vouched)
    _check_token_ids(request)
    if isinstance(request, Chat):
        for place, message in enumerate(request.messages):
            told_of(message, f"messages[{place}]", strict=request.strict_media)
        _check_calls(request, answers, vouched)


def check_load(request: Load, vouched: Collection[str]) -> None:
    """Refuse a load that the mock cannot serve; see `check`.

    Args:
        request: The load.
        vouched: Fields that its rule matches on.

    Raises:
        RequestError: unsupported, invalid_request.
    """
    check_fields(request, vouched)
    if request.context_len is not None and request.context_len > CONTEXT_LEN:
        problem = f"must be at most {CONTEXT_LEN}, the context of this model, not {request.context_len}"
        raise RequestError("invalid_request", f"context_len: {problem}", field="context_len")


def check_fields(request: Load | Generate | Chat | Tokenize, vouched: Collection[str] = ()) -> None:
    """Refuse fields that the mock cannot serve.

    Args:
        request: The request.
        vouched: Fields that its rule matches on.

    Raises:
        RequestError: unsupported, invalid_request.
    """
    for field in NEEDS_A_RULE:
        if getattr(request, field, None) and field not in vouched:
            problem = f"the mock cannot serve `{field}` by itself; a rule of its scenario that matches on it can"
            raise RequestError("unsupported", f"{field}: {problem}", field=field)
    if isinstance(request, Chat | Tokenize) and request.messages and request.continue_final_message:
        _check_continued(request.messages[-1])


def _check_continued(message: Message) -> None:
    if message.tool_calls:
        field = "continue_final_message"
        problem = "the last message calls tools, so there is no text to continue"
        raise RequestError("invalid_request", f"{field}: {problem}", field=field)


def _check_token_ids(request: Generate | Chat) -> None:
    if isinstance(request, Generate) and not isinstance(request.prompt, str) and max(request.prompt) >= CONTEXT_LEN:
        index = next(index for index, token in enumerate(request.prompt) if token >= CONTEXT_LEN)
        _refuse_token(f"prompt[{index}]", request.prompt[index])
    for token in request.logit_bias:
        if token >= CONTEXT_LEN:
            _refuse_token(f"logit_bias.{token}", token)


def _refuse_token(field: str, token: int) -> None:
    problem = f"{field}: {token} is not a token of this model, which has {CONTEXT_LEN}"
    raise RequestError("invalid_request", problem, field=field)


def _check_calls(request: Chat, answers: Sequence[Answer], vouched: Collection[str]) -> None:
    for answer in answers:
        calls = answer.tool_calls
        if not _is_chosen(request, [call.name for call in calls if call.is_whole]):
            problem = "tool_choice: the mock calls what a rule of its scenario says, and none says this"
            raise RequestError("unsupported", problem, field="tool_choice")
        if "tools" not in vouched:
            _check_strict(request, calls)


def _is_chosen(request: Chat, called: list[str]) -> bool:
    if isinstance(request.tool_choice, NamedTool):
        return set(called) == {request.tool_choice.name}
    return request.tool_choice != "required" or bool(called)


def _check_strict(request: Chat, calls: Sequence[Call]) -> None:
    called = {call.name for call in calls}
    for number, tool in enumerate(request.tools):
        if tool.function.strict and tool.function.name in called:
            field = f"tools[{number}].function.strict"
            problem = "the mock checks no arguments; a rule of its scenario that matches on `tools` can stand in"
            raise RequestError("unsupported", f"{field}: {problem}", field=field)
