"""Instructor, in its modes that demand the schema, through OpenAI's and Anthropic's clients."""

import sys
from functools import partial
from typing import Any

import instructor
from anthropic import Anthropic
from cases import run_named
from openai import OpenAI
from pydantic import BaseModel, Field

(TINY,) = sys.argv[1:]
OPENAI = OpenAI(base_url=f"{TINY}/v1", api_key="any", max_retries=0)
MODES = ("TOOLS", "TOOLS_STRICT", "JSON_SCHEMA", "RESPONSES_TOOLS")


class Person(BaseModel):
    """The schema of the answer."""

    name: str = Field(max_length=8)
    age: int = Field(ge=0, le=120)


def ask(client: Any, **options: Any) -> Any:
    messages = [{"role": "user", "content": "Ada is 36 years old."}]
    person = client.create(
        model="builtin:tiny", messages=messages, response_model=Person, max_tokens=200, max_retries=0, **options
    )
    return person.model_dump()


def openai(mode: str) -> Any:
    return ask(instructor.from_openai(OPENAI, mode=instructor.Mode[mode]), temperature=0)


def anthropic() -> Any:
    return ask(instructor.from_anthropic(Anthropic(base_url=TINY, api_key="any", max_retries=0)))


def partial_objects() -> Any:
    client = instructor.from_openai(OPENAI, mode=instructor.Mode.TOOLS)
    messages: Any = [{"role": "user", "content": "Ada is 36 years old."}]
    people = client.create_partial(
        model="builtin:tiny", messages=messages, response_model=Person, max_tokens=200, temperature=0
    )
    return [person.model_dump() for person in people][-1]


run_named({mode: partial(openai, mode) for mode in MODES} | {"anthropic": anthropic, "partial": partial_objects})
