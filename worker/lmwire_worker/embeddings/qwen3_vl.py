"""Embedding models that see: Qwen3-VL-Embedding, which has one space for texts and images."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import mlx.core as mx
from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_vlm.encoder_loader import load_encoder_model
from mlx_vlm.models.pooling import EmbeddingOutput, normalize_embeddings, pool_by_config
from mlx_vlm.utils import load_processor

from lmwire_protocol import RequestError

from ..media import Image
from ..models.weights import summarize_exception
from ..multimodal.vision_model import lend_template
from .inputs import TextInputs
from .network import EmbeddingNetwork, Input
from .recipe import Recipe

INSTRUCTION: Final = "Represent the user's input."
"""What the model is told where its folder does not say: its makers' own script tells it so."""
ARCHITECTURES: Final = {"qwen3_vl": "qwen3_vl_embedding"}
"""Folders name the architecture of the model that it was made from; mlx-vlm has one for what it became."""
LAST_TOKEN: Final = {"pooling_mode": "lasttoken"}


class SeeingNetwork(EmbeddingNetwork):
    """Makes vectors of texts and images.

    Args:
        folder: The model's.
        recipe: What its folder says.
        trust_remote_code: Whether the processor may bring its own.

    Raises:
        RequestError: bad_model. Its weights have sizes, and are not read yet.
    """

    def __init__(self, folder: Path, recipe: Recipe, *, trust_remote_code: bool) -> None:
        super().__init__(folder, recipe)
        # Behind the architecture, which says which processor is its own.
        self.processor = _open_processor(folder, trust_remote_code=trust_remote_code)
        """Makes patches of images."""
        self._pooling: dict[str, Any] = recipe.pooling or LAST_TOKEN

    @property
    def vocab_size(self) -> int:
        config: Any = self.module.config
        return config.text_config.vocab_size

    @property
    def longest(self) -> int:
        config: Any = self.module.config
        return config.text_config.max_position_embeddings

    @property
    def marks(self) -> set[int]:
        """The tokens that stand for parts of images and videos."""
        config: Any = self.module.config
        return {config.image_token_id, config.video_token_id}

    def _load(self, folder: Path) -> Any:
        return load_encoder_model(folder, model_remapping=ARCHITECTURES, lazy=True)

    def _run(self, ids: mx.array, mask: mx.array, rows: Sequence[Input]) -> Any:
        language: Any = self.module.language_model
        language._position_ids = language._rope_deltas = None  # the last inputs', which it would take for these
        images = [row.pixels for row in rows if row.pixels is not None]
        made = self.processor.image_processor(images) if images else {}
        seen = {name: mx.array(value) for name, value in made.items()}
        hidden = self.module(ids, attention_mask=mask, **seen).last_hidden_state
        return EmbeddingOutput(hidden, normalize_embeddings(pool_by_config(hidden, mask, self._pooling)))


class SeenInputs(TextInputs):
    """The inputs of a model that sees: each is the message of a conversation, behind an instruction.

    Args:
        tokenizer: The model's own.
        recipe: What its folder says.
        network: The model.

    Raises:
        RequestError: bad_model, when its template makes no such conversation.
    """

    def __init__(self, tokenizer: TokenizerWrapper, recipe: Recipe, network: SeeingNetwork) -> None:
        super().__init__(tokenizer, recipe, network.vocab_size)
        self._instruction = recipe.prompt or INSTRUCTION
        self._sizes = network.processor.image_processor
        self._marks = network.marks
        lend_template(tokenizer, network.processor)
        try:
            shown = self._encode(self._conversation({"type": "image"}))
        except Exception as error:  # a template raises whatever it likes
            raise RequestError("bad_model", f"the model's chat template fails: {summarize_exception(error)}") from None
        places = [at for at, token in enumerate(shown) if token in self._marks]
        if len(places) != 1:
            raise RequestError("bad_model", f"the model's chat template has {len(places)} places for one image")
        at = places[0]
        self._before, self._image, self._behind = shown[:at], shown[at : at + 1], shown[at + 1 :]

    def render(self, text: str) -> str:
        return self._conversation({"type": "text", "text": self._cased(text)}) if text else ""

    def tokens(self, text: str) -> list[int]:
        tokens = self._encode(self.render(text))
        if not self._marks.isdisjoint(tokens):
            raise ValueError("holds the model's own mark for a part of an image; leave it out")
        return tokens

    def image_tokens(self, image: Image) -> list[int]:
        """Those of an image with what belongs to it.

        Raises:
            ValueError: it has a shape that the model does not take.
        """
        count = self._sizes.num_image_tokens(image.pixels.height, image.pixels.width)
        return [*self._before, *self._image * count, *self._behind]

    def _conversation(self, part: dict[str, str]) -> str:
        messages = [{"role": "system", "content": self._instruction}, {"role": "user", "content": [part]}]
        rendered: Any = self._tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        return rendered

    def _encode(self, rendered: str) -> list[int]:
        return self._known(self._tokenizer.encode(rendered, add_special_tokens=False))


def _open_processor(folder: Path, *, trust_remote_code: bool) -> Any:
    try:
        return load_processor(folder, add_detokenizer=False, trust_remote_code=trust_remote_code)
    except Exception as error:  # transformers raises whatever its processors raise
        raise RequestError(
            "bad_model", f"the processor of {folder} does not load: {summarize_exception(error)}"
        ) from None
