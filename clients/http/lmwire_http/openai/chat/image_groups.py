"""Work on many images in groups: labels such as `[Image 2: cat.png]`, a generation for each group, one answer."""

import hashlib
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from lmwire import MediaDict, MessageDict
from lmwire_protocol import events

from ...http.context import RequestContext
from ...http.endpoint import Json
from ...inference.media import last_answer
from .generation import ChatGeneration
from .request import ChatRequest, image_group_size
from .response import ChoiceParts

_LABEL: Final = re.compile(r"\[Image (\d{1,6}): ([^\[\]\n]+)\]")
_RESERVED: Final = re.compile(r"[^\w.+@()-]+")
"""Characters that could end a label, or be part of a model's placeholder token."""
_MAX_NAME_CHARACTERS: Final = 80
_HASH_CHARACTERS: Final = 8
_PART: Final = re.compile(r"messages\[(\d+)\]\.content\[(\d+)\]")
_SEPARATOR: Final = "\n\n"


class ImagePlace(NamedTuple):
    """The place of an image in a conversation."""

    message: int
    """Index of the message."""
    part: int
    """Index of the part in its content."""


def image_places(messages: Sequence[MessageDict]) -> Iterator[ImagePlace]:
    """Yield the places of all images, in order."""
    for index, message in enumerate(messages):
        for at, part in enumerate(_parts(message)):
            if part["type"] == "image":
                yield ImagePlace(index, at)


def label_images(messages: Sequence[MessageDict]) -> dict[ImagePlace, str]:
    """Return the label of each image.

    The same image has the same number. Labels in earlier answers count too, so that a client need not send old images
    again to keep their numbers.
    """
    numbers = _Numbers()
    labels: dict[ImagePlace, str] = {}
    for index, message in enumerate(messages):
        if message["role"] == "assistant":
            numbers.add_answer(_text(message))
        for at, part in enumerate(_parts(message)):
            if part["type"] == "image":
                labels[ImagePlace(index, at)] = numbers.label(part["media"])
    return labels


class _Numbers:
    def __init__(self) -> None:
        self._of_image: dict[tuple[str, str], int] = {}
        self._of_name: dict[str, int] = {}
        self._given: set[int] = set()
        """The numbers of images in the conversation."""
        self._last = 0

    def add_answer(self, text: str) -> None:
        """Take the numbers that an earlier answer announced."""
        for number, name in _LABEL.findall(text):
            self._of_name.setdefault(name, int(number))
            self._last = max(self._last, int(number))

    def label(self, media: MediaDict) -> str:
        """Return an image's label. Count on if the image is new."""
        ((kind, source),) = media.items()
        name, key = _name(media), (kind, str(source))
        if key not in self._of_image:
            announced = self._of_name.get(name)
            if announced is None or announced in self._given:  # another file with the same name
                announced = self._last = self._last + 1
            self._of_image[key] = self._of_name[name] = announced
            self._given.add(announced)
        return f"[Image {self._of_image[key]}: {name}]"


def _name(media: MediaDict) -> str:
    """Return the name of an image's file, or one made of a hash if the image came as data."""
    data = media.get("data")
    if data is None:
        path = media.get("path") or unquote(urlsplit(str(media.get("url"))).path)
        return _RESERVED.sub("_", PurePosixPath(str(path)).name)[-_MAX_NAME_CHARACTERS:] or "image"
    head, _, content = str(data).rpartition(",")
    suffix = re.match(r"data:image/(\w+)", head, re.IGNORECASE)
    digest = hashlib.sha256(content.encode(errors="replace")).hexdigest()[:_HASH_CHARACTERS]
    return f"image_{digest}.{suffix[1].lower() if suffix else 'bin'}"


def _parts(message: MessageDict) -> Sequence[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else ()


def _text(message: MessageDict) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in _parts(message))


class ImageGroup:
    """The conversation for one group of images.

    Args:
        messages: The conversation. Images outside the group are left out, or replaced by their labels.
        heading: The start of the group's part of the answer, which announces its images.
        places: The place in the client's conversation of each part of `messages`.
    """

    def __init__(
        self, messages: Sequence[MessageDict], heading: str = "", places: dict[ImagePlace, int] | None = None
    ) -> None:
        self.messages = messages
        self.heading = heading
        self._places = places or {}

    def client_field(self, field: str) -> str:
        """Return the path in the client's conversation of a field of `messages`."""

        def moved(found: re.Match[str]) -> str:
            message, part = int(found[1]), int(found[2])
            return f"messages[{message}].content[{self._places.get(ImagePlace(message, part), part)}]"

        return _PART.sub(moved, field, count=1)


class GroupedGeneration(ChatGeneration):
    """The answers to a request whose images are divided into groups, as one answer: each group has a generation."""

    def __init__(self, context: RequestContext, body: ChatRequest) -> None:
        super().__init__(context, body)
        self._size = image_group_size(body, context.state.settings.image_group)

    async def whole(self) -> Json:
        """Return the whole chat completion."""
        headings: list[str] = []
        choices: list[list[ChoiceParts]] = []
        results: list[events.ResultDone] = []
        for group in image_groups(self.messages, self._size):
            headings.append(group.heading)
            async with self.generation(group.messages, group.client_field) as generation:
                choices.append(await self.choices(generation))
                results.append(generation.result)
        return self.completion(join_choices(headings, choices), join_results(results))

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the chat completion's chunks as they come."""
        encoder = self.encoder
        results: list[events.ResultDone] = []
        for number, group in enumerate(image_groups(self.messages, self._size)):
            heading = encoder.text(group.heading) if group.heading else b""
            async with self.generation(group.messages, group.client_field, progress_of=number) as generation:
                if results:  # the first heading waits for a token: until then, an error has an HTTP status
                    yield heading
                    heading = b""
                async for batch in generation:
                    if frames := heading + encoder.deltas(batch, number):
                        heading = b""
                        yield frames
                if heading:
                    yield heading
                results.append(generation.result)
                encoder.note_end(number, generation.result)
        yield encoder.end(join_results(results))


def image_groups(messages: Sequence[MessageDict], size: int | None) -> Iterator[ImageGroup]:
    """Yield the groups of a conversation; a single one without a heading if it has no more images than a group.

    The images after the last answer are divided into groups. Each has its label before it. Earlier images are replaced
    by their labels, so no prompt has more images than a group. Each group is made when it is needed: each has the whole
    conversation, and there can be as many as images.

    Args:
        messages: The conversation.
        size: Maximum number of images in a group; None for no groups.
    """
    if size is None or len(places := list(image_places(messages))) <= size:
        yield ImageGroup(messages)
        return
    labels = label_images(messages)
    last = last_answer(messages)
    new = [place for place in places if place.message > last]
    for start in range(0, max(len(new), 1), size):
        yield _group(messages, labels, new[start : start + size], last, is_first=start == 0)


def join_choices(headings: Sequence[str], choices: Sequence[Sequence[ChoiceParts]]) -> list[ChoiceParts]:
    """Return the answers to all groups as one.

    Args:
        headings: The headings of the groups.
        choices: The choices of each group's answer: one, unless there is a single group.
    """
    if len(headings) == 1:
        return list(choices[0])
    parts = [group[0] for group in choices]
    unfinished = (part for part in parts if part.answer.finish_reason != "stop")
    logprobs = [part.logprobs for part in parts if part.logprobs]
    return [
        ChoiceParts(
            answer=next(unfinished, parts[-1]).answer,
            logprobs=replace(logprobs[0], content=[token for each in logprobs for token in each.content])
            if logprobs
            else None,
            calls=[],
            content="".join(heading + part.content for heading, part in zip(headings, parts, strict=True)),
            reasoning="".join(part.reasoning for part in parts),
        )
    ]


def join_results(results: Sequence[events.ResultDone]) -> events.ResultDone:
    """Return the results of all groups as one: the first end before the model's own, the sums of usage and times."""
    result = next((result for result in results if result.finish_reason != "stop"), results[-1])
    counts = {name: sum(getattr(result.usage, name) for result in results) for name in events.Usage.__struct_fields__}
    names = ("queued_ms", "prefill_ms", "first_token_ms", "total_ms")
    times = {name: sum(getattr(result.timings, name) or 0.0 for result in results) for name in names}
    return replace(result, usage=events.Usage(**counts), timings=events.Timings(**times), cache_miss=None)


def _group(
    messages: Sequence[MessageDict],
    labels: dict[ImagePlace, str],
    group: Sequence[ImagePlace],
    last: int,
    *,
    is_first: bool,
) -> ImageGroup:
    shown: list[MessageDict] = []
    places: dict[ImagePlace, int] = {}
    for index, message in enumerate(messages):
        content = message.get("content")
        if not isinstance(content, list):
            shown.append(message)
            continue
        parts: list[Any] = []
        for at, part in enumerate(content):
            place = ImagePlace(index, at)
            for each in _shown_parts(part, labels.get(place), is_new=index > last, in_group=place in group):
                places[ImagePlace(index, len(parts))] = at
                parts.append(each)
        changed: MessageDict = {**message, "content": _separated(parts) or ""}
        shown.append(changed)
    heading = "\n".join(labels[place] for place in group)
    return ImageGroup(shown, f"{'' if is_first else _SEPARATOR}{heading}{_SEPARATOR}" if heading else "", places)


def _separated(parts: Sequence[Any]) -> list[Any]:
    """Return the parts with a newline between texts, also those that labels and removed images have made adjacent."""
    apart = [
        {**part, "text": f"{part['text']}\n"}
        if part["type"] == following["type"] == "text" and not part["text"].endswith("\n")
        else part
        for part, following in pairwise(parts)
    ]
    return [*apart, *parts[-1:]]


def _shown_parts(part: Any, label: str | None, *, is_new: bool, in_group: bool) -> list[Any]:
    """Return the parts that stand for a part in a group's conversation."""
    if label is None:
        return [part]
    if is_new and not in_group:
        return []
    text = {"type": "text", "text": f"{label}\n"}
    return [text, part] if in_group else [text]
