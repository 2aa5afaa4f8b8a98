"""LangChain's ChatOpenAI, through chat completions and Responses, and its OpenAIEmbeddings."""

import sys
from functools import partial
from typing import Any

from cases import run_named
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings
from pydantic import BaseModel, Field

TINY, SCRIPTED = sys.argv[1:]
APIS = {"chat": False, "responses": True}


class Person(BaseModel):
    """The schema of the answer."""

    name: str = Field(max_length=8)
    age: int = Field(ge=0, le=120)


@tool
def weather(city: str) -> str:
    """Get the weather of a city."""
    return f"21 degrees in {city}"


def model(api: str, url: str, name: str) -> Any:
    options: dict[str, Any] = {"api_key": "any", "max_retries": 0, "use_responses_api": APIS[api], "temperature": 0}
    return ChatOpenAI(base_url=f"{url}/v1", model=name, max_tokens=200, stream_usage=True, **options)


def text(api: str) -> Any:
    message = model(api, TINY, "builtin:tiny").invoke("Who are you?")
    return {"text": message.text, "tokens": message.usage_metadata["output_tokens"]}


def stream(api: str) -> Any:
    chunks = list(model(api, TINY, "builtin:tiny").stream("Who are you?"))
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return {"deltas": len(chunks), "text": whole.text, "tokens": whole.usage_metadata["output_tokens"]}


def schema(api: str) -> Any:
    structured = model(api, TINY, "builtin:tiny").with_structured_output(Person)
    return structured.invoke("Ada is 36 years old.").model_dump()


def tools(api: str) -> Any:
    caller = model(api, SCRIPTED, "mock").bind_tools([weather])
    conversation: list[Any] = [HumanMessage("The weather in Rome?")]
    conversation.append(caller.invoke(conversation))
    conversation += [weather.invoke(call) for call in conversation[-1].tool_calls]
    return caller.invoke(conversation).text


def completion() -> Any:
    options: dict[str, Any] = {"api_key": "any", "max_tokens": 3, "max_retries": 0}
    return OpenAI(base_url=f"{SCRIPTED}/v1", model="mock", **options).invoke("one two three")


def embeddings() -> Any:
    options: dict[str, Any] = {"api_key": "any", "max_retries": 0, "check_embedding_ctx_length": False}
    embedder = OpenAIEmbeddings(base_url=f"{SCRIPTED}/v1", model="mock", **options)
    return [len(vector) for vector in embedder.embed_documents(["one", "two"])]


run_named(
    {f"{api} {function.__name__}": partial(function, api) for api in APIS for function in (text, stream, schema, tools)}
    | {"completion": completion, "embeddings": embeddings}
)
