"""Let a model call a function of yours: python_tools.py MODEL PROMPT."""

import sys

from lmwire import MessageDict, ToolDict, Worker


def get_weather(city: str) -> str:
    """Return the weather in a city."""
    return "sunny, 21 degrees"


WEATHER: ToolDict = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}

model, prompt = sys.argv[1:]
messages: list[MessageDict] = [{"role": "user", "content": prompt}]
with Worker() as worker:
    worker.load(model)
    while (answer := worker.chat(messages, tools=[WEATHER], max_tokens=200).answer()).tool_calls:
        messages.append(answer.message)
        for call in answer.tool_calls:
            print(f"{call.name}({call.arguments})")
            messages.append(call.result(get_weather(**call.arguments)))
    print(answer.text)
