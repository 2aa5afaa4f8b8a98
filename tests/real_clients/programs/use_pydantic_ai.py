"""Pydantic AI, through chat completions, Responses and Anthropic's messages."""

import sys
from functools import partial
from typing import Any

from anthropic import AsyncAnthropic
from cases import run_named
from openai import AsyncOpenAI
from pydantic import BaseModel, Field
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

TINY, SCRIPTED = sys.argv[1:]
APIS = ("chat", "responses", "anthropic")


class Person(BaseModel):
    """The schema of the answer."""

    name: str = Field(max_length=8)
    age: int = Field(ge=0, le=120)


def model(api: str, url: str, name: str) -> Any:
    if api == "anthropic":
        messages = AsyncAnthropic(base_url=url, api_key="any", max_retries=0)
        return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=messages))
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
    provider = OpenAIProvider(openai_client=client)
    return {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}[api](name, provider=provider)


def agent(api: str, **options: Any) -> Any:
    return Agent(model(api, TINY, "builtin:tiny"), model_settings={"max_tokens": 200, "temperature": 0}, **options)


async def text(api: str) -> Any:
    result = await agent(api).run("Who are you?")
    return {"text": result.output, "tokens": result.usage.output_tokens}


async def stream(api: str) -> Any:
    async with agent(api).run_stream("Who are you?") as result:
        deltas = [delta async for delta in result.stream_text(delta=True, debounce_by=None)]
    return {"deltas": len(deltas), "text": "".join(deltas), "tokens": result.usage.output_tokens}


async def schema(api: str) -> Any:
    return (await agent(api, output_type=NativeOutput(Person)).run("Ada is 36 years old.")).output.model_dump()


async def tool_schema(api: str) -> Any:
    return (await agent(api, output_type=Person).run("Ada is 36 years old.")).output.model_dump()


async def chosen_tool(api: str) -> Any:
    caller, cities = agent(api), []

    @caller.tool_plain
    def get_weather(city: str) -> str:
        """Get the current weather in a city."""
        cities.append(city)
        return f"21 degrees in {city}"

    return {"text": (await caller.run("What is the weather in Rome?")).output, "cities": cities}


async def tools(api: str) -> Any:
    caller = Agent(model(api, SCRIPTED, "mock"))

    @caller.tool_plain
    def weather(city: str) -> str:
        """Get the weather of a city."""
        return f"21 degrees in {city}"

    return (await caller.run("The weather in Rome?")).output


run_named(
    {
        f"{api} {function.__name__}": partial(function, api)
        for api in APIS
        for function in (text, stream, schema, tool_schema, chosen_tool, tools)
        if (api, function) != ("anthropic", schema)  # Pydantic AI allows it for Claude alone
    }
)
