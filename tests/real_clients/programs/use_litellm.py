"""LiteLLM, as OpenAI's, Anthropic's and a hosted vLLM's client."""

import json
import sys
from functools import partial
from typing import Any

import litellm
from cases import run_named
from pydantic import BaseModel, Field

TINY, SCRIPTED = sys.argv[1:]
PROVIDERS = {"openai": "/v1", "anthropic": "", "hosted_vllm": "/v1"}
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Get the weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class Person(BaseModel):
    """The schema of the answer."""

    name: str = Field(max_length=8)
    age: int = Field(ge=0, le=120)


def ask(provider: str, url: str, name: str, messages: Any, **options: Any) -> Any:
    base = f"{url}{PROVIDERS[provider]}"
    call = partial(litellm.completion, messages=messages) if messages else litellm.responses
    return call(model=f"{provider}/{name}", api_base=base, api_key="any", num_retries=0, **options)


def ask_tiny(provider: str, content: str = "Who are you?", **options: Any) -> Any:
    messages = [{"role": "user", "content": content}]
    return ask(provider, TINY, "builtin:tiny", messages, max_tokens=200, temperature=0, **options)


def text(provider: str) -> Any:
    answer = ask_tiny(provider)
    return {"text": answer.choices[0].message.content, "tokens": answer.usage.completion_tokens}


def stream(provider: str) -> Any:
    chunks = list(ask_tiny(provider, stream=True, stream_options={"include_usage": True}))
    whole: Any = litellm.stream_chunk_builder(chunks)
    content = whole.choices[0].message.content
    return {"deltas": len(chunks), "text": content, "tokens": whole.usage.completion_tokens}


def schema(provider: str) -> Any:
    answer = ask_tiny(provider, "Ada is 36 years old.", response_format=Person)
    return Person.model_validate_json(answer.choices[0].message.content).model_dump()


def tools(provider: str) -> Any:
    messages: list[Any] = [{"role": "user", "content": "The weather in Rome?"}]
    first = ask(provider, SCRIPTED, "mock", messages, tools=[WEATHER]).choices[0].message
    # LiteLLM's own history has fields that OpenAI's API does not know, such as provider_specific_fields.
    messages.append(first.model_dump())
    for call in first.tool_calls:
        city = json.loads(call.function.arguments)["city"]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": f"21 degrees in {city}"})
    return ask(provider, SCRIPTED, "mock", messages, tools=[WEATHER]).choices[0].message.content


def reasoning(provider: str) -> Any:
    messages = [{"role": "user", "content": "think aloud"}]
    message = ask(provider, SCRIPTED, "mock", messages).choices[0].message
    return {"text": message.content, "reasoning": message.reasoning_content}


def response() -> Any:
    answer = ask("openai", TINY, "builtin:tiny", None, input="Who are you?", max_output_tokens=200)
    return {"text": answer.output_text, "tokens": answer.usage.output_tokens}


def embeddings() -> Any:
    answer: Any = litellm.embedding(
        model="openai/mock", input=["one", "two"], api_base=f"{SCRIPTED}/v1", api_key="any", num_retries=0
    )
    return [len(row["embedding"]) for row in answer.data]


run_named(
    {
        f"{provider} {function.__name__}": partial(function, provider)
        for provider in PROVIDERS
        for function in (text, stream, schema, tools, reasoning)
    }
    | {"response": response, "embeddings": embeddings}
)
