"""Descriptions of models as Codex CLI reads them from /v1/models.

It reads them with a provider that has a command for its key, or from a file that `model_catalog_json` names. Without,
it assumes a context of its own. See https://github.com/openai/codex/blob/main/codex-rs/protocol/src/openai_models.rs.
"""

from typing import Final, Literal

from msgspec import Struct

from ..pool import ServedModel

_INSTRUCTIONS: Final = """\
You are a coding agent in the user's terminal. You share a folder with the user, and you work on it with tools.

- Look at the files that matter before you change them. Search with `rg` if it is there.
- Change only what the task needs, in the style of the code around it. Edit files with `apply_patch`.
- Check your work: run the tests or the program.
- Continue until the task is done. Ask only if you cannot go on without an answer.
- At the end, say in a few sentences what you did, and name the files.
"""
_TOOL_OUTPUT_TOKENS: Final = 10_000


class TruncationPolicy(Struct, kw_only=True, frozen=True):
    """The part of a tool's output that the model sees."""

    mode: Literal["tokens"] = "tokens"
    limit: int = _TOOL_OUTPUT_TOKENS


class CodexModel(Struct, kw_only=True):
    """A model as Codex describes it. It refuses the whole list if a field is absent that it needs."""

    slug: str
    display_name: str
    description: None = None
    base_instructions: str = _INSTRUCTIONS
    """The system prompt. Codex has one of its own only for models that it does not find in the list."""
    context_window: int | None
    """Context length in tokens; null if unknown."""
    input_modalities: list[Literal["text", "image"]]
    shell_type: Literal["default"] = "default"
    apply_patch_tool_type: Literal["freeform"] = "freeform"
    supports_parallel_tool_calls: bool = True
    supported_reasoning_levels: list[None] = []
    """None: the chat template decides whether the model reasons."""
    support_verbosity: bool = False
    truncation_policy: TruncationPolicy = TruncationPolicy()
    experimental_supported_tools: list[str] = []
    visibility: Literal["list"] = "list"
    supported_in_api: bool = True
    priority: int
    """Place in the list; Codex starts with the first."""


def codex_models(models: list[ServedModel]) -> list[CodexModel]:
    """Return the models that can chat, as far as is known, in their order."""
    return [_codex_model(served, place) for place, served in enumerate(filter(_may_chat, models))]


def _may_chat(served: ServedModel) -> bool:
    return served.loaded is None or "chat" in served.loaded.capabilities


def _codex_model(served: ServedModel, place: int) -> CodexModel:
    sees = served.loaded is not None and "images" in served.loaded.capabilities
    return CodexModel(
        slug=served.id,
        display_name=served.id,
        context_window=served.context_len,
        input_modalities=["text", "image"] if sees else ["text"],
        priority=place,
    )
