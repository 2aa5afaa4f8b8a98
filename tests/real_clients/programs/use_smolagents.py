"""smolagents' agent that calls tools. It demands a call in each step, and the tool `final_answer` ends it."""

import sys
from functools import partial
from typing import Any

from cases import run_named
from smolagents import OpenAIModel, ToolCallingAgent, tool

TINY, SCRIPTED = sys.argv[1:]


@tool
def weather(city: str) -> str:
    """Get the weather of a city.

    Args:
        city: Name of the city.
    """
    return f"21 degrees in {city}"


def run(url: str, name: str) -> Any:
    model = OpenAIModel(name, api_base=f"{url}/v1", api_key="any", temperature=0, max_tokens=200)
    agent = ToolCallingAgent(tools=[weather], model=model, max_steps=4, verbosity_level=0)
    run = agent.run("What is the weather in Rome?", return_full_result=True)
    return {"answer": run.output, "state": run.state, "tokens": run.token_usage.output_tokens}


run_named({"tiny": partial(run, TINY, "builtin:tiny"), "scripted": partial(run, SCRIPTED, "mock")})
