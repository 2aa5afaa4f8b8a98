"""Work on many images in groups: one generation for each group, one answer for the client."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from msgspec.structs import replace

from lmwire import MessageDict
from lmwire_protocol import events

from ...inference.media import last_answer
from .image_labels import ImagePlace, image_places, label_images
from .response_schema import ChoiceParts

_PART: Final = re.compile(r"messages\[(\d+)\]\.content\[(\d+)\]")
_SEPARATOR: Final = "\n\n"


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
    """Return the results of all groups as one: the first end before the model's own, and the sum of the usage."""
    result = next((result for result in results if result.finish_reason != "stop"), results[-1])
    counts = {name: sum(getattr(result.usage, name) for result in results) for name in events.Usage.__struct_fields__}
    return replace(result, usage=events.Usage(**counts))


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
