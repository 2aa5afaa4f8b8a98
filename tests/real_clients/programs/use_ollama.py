"""Ollama's client for Python. Arguments: URLs of the built-in model's server and of the scripted one."""

import sys
from typing import Any

from cases import run_named
from ollama import Client
from pydantic import BaseModel, Field

TINY, SCRIPTED = [Client(host=url) for url in sys.argv[1:]]
MODEL = "builtin:tiny"
ASKED = [{"role": "user", "content": "Who are you?"}]
LIMITS = {"temperature": 0, "num_predict": 200}


class Person(BaseModel):
    """The schema of the answer."""

    name: str = Field(max_length=8)
    age: int = Field(ge=0, le=120)


def weather(city: str) -> str:
    """Get the weather of a city."""
    return f"21 degrees in {city}"


def chat() -> Any:
    answer = TINY.chat(MODEL, ASKED, options=LIMITS)
    return {"text": answer.message.content, "tokens": answer.eval_count}


def chat_stream() -> Any:
    chunks = list(TINY.chat(MODEL, ASKED, options=LIMITS, stream=True))
    return {"text": "".join(chunk.message.content or "" for chunk in chunks), "tokens": chunks[-1].eval_count}


def generate() -> Any:
    answer = TINY.generate(MODEL, "Who are you?", options=LIMITS)
    return {"text": answer.response, "tokens": answer.eval_count}


def schema() -> Any:
    asked = [{"role": "user", "content": "Ada is 36 years old."}]
    answer = TINY.chat(MODEL, asked, format=Person.model_json_schema(), options=LIMITS)
    return Person.model_validate_json(answer.message.content or "").model_dump()


def tools() -> Any:
    messages: list[Any] = [{"role": "user", "content": "The weather in Rome?"}]
    first = SCRIPTED.chat("mock", messages, tools=[weather]).message
    messages.append(first)
    for call in first.tool_calls or ():
        result = weather(**call.function.arguments)
        messages.append({"role": "tool", "tool_name": call.function.name, "content": result})
    return SCRIPTED.chat("mock", messages, tools=[weather]).message.content


def thinking() -> Any:
    message = SCRIPTED.chat("mock", [{"role": "user", "content": "think aloud"}], think=True).message
    return {"text": message.content, "reasoning": message.thinking}


def embed() -> Any:
    return [len(vector) for vector in SCRIPTED.embed("mock", ["one", "two"]).embeddings]


def models() -> Any:
    return [model.model for model in TINY.list().models]


def show() -> Any:
    return TINY.show(MODEL).capabilities


run_named({call.__name__: call for call in (chat, chat_stream, generate, schema, tools, thinking, embed, models, show)})
