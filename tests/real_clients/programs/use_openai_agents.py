"""OpenAI's Agents SDK, through Responses and through chat completions."""

import sys
from functools import partial
from typing import Any

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool
from cases import run_named
from openai import AsyncOpenAI
from openai.types.responses import ResponseTextDeltaEvent
from pydantic import BaseModel, Field

TINY, SCRIPTED = sys.argv[1:]
MODELS = {"responses": OpenAIResponsesModel, "chat": OpenAIChatCompletionsModel}


class Person(BaseModel):
    """The schema of the answer."""

    name: str = Field(max_length=8)
    age: int = Field(ge=0, le=120)


@function_tool
def weather(city: str) -> str:
    """Get the weather of a city."""
    return f"21 degrees in {city}"


def model(api: str, url: str, name: str) -> Any:
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
    return MODELS[api](model=name, openai_client=client)


def agent(api: str, **options: Any) -> Any:
    settings = ModelSettings(max_tokens=200, temperature=0, include_usage=True)
    return Agent(name="Guide", model=model(api, TINY, "builtin:tiny"), model_settings=settings, **options)


async def text(api: str) -> Any:
    result = await Runner.run(agent(api), "Who are you?")
    return {"text": result.final_output, "tokens": result.context_wrapper.usage.output_tokens}


async def stream(api: str) -> Any:
    result = Runner.run_streamed(agent(api), "Who are you?")
    deltas = [
        event.data.delta
        async for event in result.stream_events()
        if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent)
    ]
    return {"deltas": len(deltas), "text": "".join(deltas), "tokens": result.context_wrapper.usage.output_tokens}


async def schema(api: str) -> Any:
    result = await Runner.run(agent(api, output_type=Person), "Ada is 36 years old.")
    return result.final_output.model_dump()


async def tools(api: str) -> Any:
    caller = Agent(name="Guide", instructions="Be brief.", model=model(api, SCRIPTED, "mock"), tools=[weather])
    return (await Runner.run(caller, "The weather in Rome?")).final_output


async def streamed_tools(api: str) -> Any:
    caller = Agent(name="Guide", model=model(api, SCRIPTED, "mock"), tools=[weather])
    result = Runner.run_streamed(caller, "The weather in Rome?")
    return [event.item.type async for event in result.stream_events() if event.type == "run_item_stream_event"]


async def handoff(api: str) -> Any:
    guide = Agent(name="Guide", model=model(api, SCRIPTED, "mock"))
    first = Agent(name="First", model=model(api, SCRIPTED, "mock"), handoffs=[guide])
    return (await Runner.run(first, "Pass me on.")).last_agent.name


run_named(
    {
        f"{api} {function.__name__}": partial(function, api)
        for api in MODELS
        for function in (text, stream, schema, tools, streamed_tools, handoff)
    }
)
