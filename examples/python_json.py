"""Get an answer as a value of a type: python_json.py MODEL PROMPT."""

import sys
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from lmwire import Worker


@dataclass
class Person:
    """A person, as the answer describes one."""

    name: Annotated[str, Meta(max_length=40)]
    age: Annotated[int, Meta(ge=0, le=150)]


model, prompt = sys.argv[1:]
with Worker() as worker:
    worker.load(model)
    answer = worker.chat(prompt, format=Person).answer()
    print(answer.parsed)
