"""Qwen3-VL-Embedding: vectors of texts and images in one space."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import mlx.core as mx
from mlx_vlm.encoder_loader import load_encoder_model
from mlx_vlm.models.pooling import EmbeddingOutput, normalize_embeddings, pool_by_config
from mlx_vlm.utils import load_processor

from lmwire_protocol import RequestError

from ..media import Image
from ..models.tokenizer import Tokenizer, copy_chat_template
from ..models.weights import summarize_exception
from ..prompts.chat_template import select_template
from .inputs import InputTokenizer
from .network import EmbeddingInput, EmbeddingNetwork
from .recipe import EmbeddingRecipe

DEFAULT_INSTRUCTION: Final = "Represent the user's input."
"""The instruction if the folder has none, as in the authors' own script."""
ARCHITECTURES: Final = {"qwen3_vl": "qwen3_vl_embedding"}
"""mlx-vlm's name of the architecture. Folders name the architecture of the base model."""
LAST_TOKEN: Final = {"pooling_mode": "lasttoken"}


class VisionEmbeddingNetwork(EmbeddingNetwork):
    """An embedding model of texts and images. Its weights have sizes, and are read later.

    Args:
        folder: The model's folder.
        recipe: How the model makes vectors.
        trust_remote_code: Whether the processor's own code may run.

    Raises:
        RequestError: bad_model.
    """

    def __init__(self, folder: Path, recipe: EmbeddingRecipe, *, trust_remote_code: bool) -> None:
        super().__init__(folder, recipe)
        # The architecture must be loaded first: it registers its processor.
        self.processor = _open_processor(folder, trust_remote_code=trust_remote_code)
        """mlx-vlm's processor, which cuts images into patches."""
        self._pooling: dict[str, Any] = recipe.pooling or LAST_TOKEN

    @property
    def vocab_size(self) -> int:
        """Number of tokens in the vocabulary."""
        config: Any = self.module.config
        return config.text_config.vocab_size

    @property
    def max_tokens(self) -> int:
        """Maximum number of tokens of a row."""
        config: Any = self.module.config
        return config.text_config.max_position_embeddings

    @property
    def placeholder_tokens(self) -> set[int]:
        """The placeholder tokens of images and videos."""
        config: Any = self.module.config
        return {config.image_token_id, config.video_token_id}

    def _load(self, folder: Path) -> Any:
        return load_encoder_model(folder, model_remapping=ARCHITECTURES, lazy=True)

    def run(self, ids: mx.array, mask: mx.array, rows: Sequence[EmbeddingInput]) -> Any:
        """Return the model's output for padded rows and their images."""
        language: Any = self.module.language_model
        language._position_ids = language._rope_deltas = None  # it would reuse those of the last inputs
        images = [row.pixels for row in rows if row.pixels is not None]
        made = self.processor.image_processor(images) if images else {}
        seen = {name: mx.array(value) for name, value in made.items()}
        hidden = self.module(ids, attention_mask=mask, **seen).last_hidden_state
        return EmbeddingOutput(hidden, normalize_embeddings(pool_by_config(hidden, mask, self._pooling)))


class VisionInputTokenizer(InputTokenizer):
    """The tokenizer of an embedding model for texts and images: each input is a message after an instruction.

    Args:
        tokenizer: The model's tokenizer.
        recipe: How the model makes vectors.
        network: The model.

    Raises:
        RequestError: bad_model, if the chat template cannot render such a conversation.
    """

    def __init__(self, tokenizer: Tokenizer, recipe: EmbeddingRecipe, network: VisionEmbeddingNetwork) -> None:
        super().__init__(tokenizer, recipe, network.vocab_size)
        self._instruction = recipe.prompt or DEFAULT_INSTRUCTION
        self._sizes = network.processor.image_processor
        self._marks = network.placeholder_tokens
        copy_chat_template(tokenizer, network.processor)
        try:
            self._template = select_template(tokenizer, None, tools=False)
            shown = self._encode(self._conversation({"type": "image"}), "", add_special_tokens=False)
        except BaseException as error:  # a template may raise anything
            raise RequestError("bad_model", f"the model's chat template fails: {summarize_exception(error)}") from None
        places = [at for at, token in enumerate(shown) if token in self._marks]
        if len(places) != 1:
            raise RequestError("bad_model", f"the model's chat template has {len(places)} places for one image")
        at = places[0]
        self._before, self._image, self._after = shown[:at], shown[at : at + 1], shown[at + 1 :]

    def render(self, text: str) -> str:
        """Return a text as the message of a conversation; empty for an empty text."""
        return self._conversation({"type": "text", "text": self._cased(text)}) if text else ""

    def tokens(self, text: str, field: str) -> list[int]:
        """Return the tokens of a text as a conversation; see `InputTokenizer.tokens`. May be empty."""
        return self._without_marks(self._encode(self.render(text), field, add_special_tokens=False))

    def check_tokens(self, tokens: list[int], field: str) -> list[int]:
        """Return the tokens of a request; see `InputTokenizer.check_tokens`."""
        return self._without_marks(super().check_tokens(tokens, field))

    def image_tokens(self, image: Image) -> list[int]:
        """Return the tokens of an image as a conversation.

        Raises:
            ValueError: The model does not take images of this shape.
        """
        count = self._sizes.num_image_tokens(image.pixels.height, image.pixels.width)
        return [*self._before, *self._image * count, *self._after]

    def _without_marks(self, tokens: list[int]) -> list[int]:
        if not self._marks.isdisjoint(tokens):
            raise ValueError("holds the model's own mark for a part of an image; leave it out")
        return tokens

    def _conversation(self, part: dict[str, str]) -> str:
        messages = [{"role": "system", "content": self._instruction}, {"role": "user", "content": [part]}]
        return self._template.render(messages)


def _open_processor(folder: Path, *, trust_remote_code: bool) -> Any:
    try:
        return load_processor(folder, add_detokenizer=False, trust_remote_code=trust_remote_code)
    except BaseException as error:  # transformers raises whatever its processors raise
        raise RequestError(
            "bad_model", f"the processor of {folder} does not load: {summarize_exception(error)}"
        ) from None
