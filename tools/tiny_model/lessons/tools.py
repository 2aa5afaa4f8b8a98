"""Tool calls: the right tool with the right arguments, two calls, no call, and answers from results."""

import json
from dataclasses import dataclass
from typing import Any, Final

from . import phrases, structured
from .catalogue import CATALOGUE
from .example import Example, Message, Tool, assistant, user
from .source import Source
from .words import ACTIONS, CITIES, FIELDS, LABELS, LOOKUPS, NAMES, OBJECTS, SUBJECTS, THINGS

NO_TOOL: Final = "None of the tools that I have can do that."

_LOOKUP_NOUNS: Final = (
    "the {noun} of {value}", "the {noun} for {value}", "the {noun} in {value}", "the {noun} at {value}",
    "{value}'s {noun}", "the {noun} of {value}",
)  # fmt: skip
_LOOKUP_FRAMES: Final = (
    "How is the {noun} in {value}?", "{noun} of {value}?", "{noun} in {value}?", "What about the {noun} of {value}?",
    "How about the {noun} of {value}?",
)  # fmt: skip
_BOTH_FRAMES: Final = (
    "{first} {second}", "{first} And {low_second}", "{first} Also: {second}", "{first} Then: {second}",
    "First: {first} Second: {second}",
)  # fmt: skip
_PAIR_NOUNS: Final = (
    "the {noun} of {a} and of {b}", "the {noun} of {a} and {b}", "the {noun} in {a} and in {b}",
    "the {noun} for {a} and {b}", "the {noun} of {a} and the {noun} of {b}", "the {noun} for {a} and for {b}",
    "the {noun} of both {a} and {b}", "the {noun} in {a} and {b}", "the {noun} of {a} and also of {b}",
)  # fmt: skip
_ACTION_VERBS: Final = (
    "{verb} a {object} with {arguments}", "{verb} the {object} with {arguments}", "{verb} a new {object}: {arguments}",
    "{verb} the {object}: {arguments}", "{verb} this {object}, {arguments}", "{verb} my {object} with {arguments}",
    "{verb} a {object}, {arguments}", "{verb} a {object} that has {arguments}",
)  # fmt: skip
_ARGUMENT_FRAMES: Final = ("{key} {value}", "{key}: {value}", "{key} = {value}", "{key} {value}", "the {key} {value}")
_MORE: Final = (" Use it when asked.", " Returns JSON.", " Call it once for each.", " It can take a while.", " Fast.")
_MISFITS: Final = (
    "sing the {thing} song", "drive me to {city}", "cook a {thing} for {name}", "paint the {thing}", "feed the {thing}",
    "wake up {name}", "buy a {thing} in {city}", "call {name}", "repair the {thing}", "wash the {thing}",
    "walk to {city}", "throw away the {thing}", "carry the {thing} to {name}", "fly to {city}", "clean the {thing}",
    "visit {name} in {city}", "invite {name} to {city}", "eat the {thing}", "hide the {thing}", "sell the {thing}",
    "dance with {name}", "bring {name} a {thing}", "water the {thing}", "lift the {thing}", "swim to {city}",
    "iron the {thing}", "run to {city} with the {thing}", "kiss {name}", "burn the {thing}", "play with {name}",
    "climb the {thing}", "take {name} to {city}", "build a {thing} in {city}", "knit a {thing}", "greet {name}",
    "cut the {thing}", "shout at {name}", "push the {thing}", "ride the {thing} to {city}", "smell the {thing}",
)  # fmt: skip


@dataclass
class Task:
    """A task that a person has for a tool.

    Attributes:
        tool: In the chat format of the field.
        question: How the person says it.
        arguments: Of the call that this asks for.
        about: The part that differs from other tasks.
        topic: How the model begins to tell the result.
        simple: Another value can be looked up in the same way.
    """

    tool: Tool
    question: str
    arguments: dict[str, Any]
    about: str
    topic: str
    simple: bool = False

    @property
    def name(self) -> str:
        """Name of the tool."""
        return self.tool["function"]["name"]

    @property
    def call(self) -> dict[str, Any]:
        """The tool call that fulfils the task."""
        return {"name": self.name, "arguments": self.arguments}


def one_call(source: Source) -> Example:
    """Ask for a task of one of several tools."""
    task = _task(source)
    return _example(source, "one tool call", [task], [user(task.question)], written([task.call]))


def two_calls(source: Source) -> Example:
    """Ask for two calls at once: of one tool, or of two."""
    tasks, question = _two(source)
    return _example(source, "two tool calls", tasks, [user(question)], written([task.call for task in tasks]))


def no_call(source: Source) -> Example:
    """Ask for something that no tool does."""
    others = [_task(source) for _ in range(source.between(1, 3))]
    if source.chance(0.4):
        misfit = source.one(_MISFITS).format(
            thing=source.identifier(THINGS), city=source.one(CITIES), name=source.one(NAMES)
        )
        question = phrases.done(source, misfit)
    else:
        wanted = _task(source)
        others = [task for task in others if not _alike(task, wanted)] or [_lookup(source, noun=source.invented())]
        question = wanted.question
    return _example(source, "no tool call", others, [user(question)], NO_TOOL, distract=False)


def result(source: Source) -> Example:
    """Ask for an answer from the results of tools."""
    if source.chance(0.7):
        task = _task(source)
        tasks, question = [task], task.question
    else:
        tasks, question = _two(source)
    messages: list[Message] = [user(question), _calling(tasks)]
    sentences = []
    for task in tasks:
        content, sentence = _outcome(source, task)
        messages.append({"role": "tool", "name": task.name, "content": content})
        sentences.append(sentence)
    return _example(source, "using a tool's result", tasks, messages, " ".join(sentences))


def follow_up(source: Source) -> Example:
    """Ask a second question after a first call and its answer."""
    first, second = _task(source), _task(source)
    if source.chance(0.5):
        second = _again(source, first)
    content, sentence = _outcome(source, first)
    messages = [user(first.question), _calling([first]), {"role": "tool", "content": content}, assistant(sentence)]
    messages.append(user(second.question))
    return _example(source, "one tool call", [first, second], messages, written([second.call]))


def some_tools(source: Source) -> list[Tool]:
    """Return tools for a request that does not need them."""
    return _unique([source.any((_lookup, _action))(source).tool for _ in range(source.between(1, 3))])


def written(calls: list[dict[str, Any]]) -> str:
    """Return calls as the model writes them."""
    return "\n".join(f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>" for call in calls)


def _calling(tasks: list[Task]) -> Message:
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"type": "function", "function": task.call} for task in tasks],
    }


def _example(
    source: Source, ability: str, tasks: list[Task], messages: list[Message], answer: str, *, distract: bool = True
) -> Example:
    tools = [task.tool for task in tasks]
    if distract:
        others = [_task(source) for _ in range(source.any((0, 0, 1, 1, 2, 3)))]
        tools += [task.tool for task in others if not any(_alike(task, used) for used in tasks)]
    tools = _unique(tools)
    source.random.shuffle(tools)
    return Example(ability, messages, answer, tools=tools)


def _unique(tools: list[Tool]) -> list[Tool]:
    return list({tool["function"]["name"]: tool for tool in tools}.values())


def _alike(one: Task, other: Task) -> bool:
    return one.about == other.about or one.name == other.name


def _two(source: Source) -> tuple[list[Task], str]:
    if source.chance(0.5):
        first = _lookup(source)
        second = _again(source, first)
        (a,), (b,) = first.arguments.values(), second.arguments.values()
        both = source.any(_PAIR_NOUNS).format(noun=first.about, a=a, b=b)
        return [first, second], _asked(source, both)
    first, second = _task(source), _task(source)
    while _alike(first, second):
        second = _task(source)
    low_second = second.question[0].lower() + second.question[1:]
    frame = source.any(_BOTH_FRAMES)
    return [first, second], frame.format(first=first.question, second=second.question, low_second=low_second)


def _task(source: Source) -> Task:
    kind = source.between(0, 9)
    if kind < 2 and not source.held_out:
        tool, topic, questions, make = source.any(CATALOGUE)
        arguments = make(source)
        question = source.any(questions).format(**arguments)
        return Task(tool, question, arguments, tool["function"]["name"], topic.format(**arguments))
    return _lookup(source) if kind < 6 else _action(source)


def _lookup(source: Source, noun: str = "") -> Task:
    noun = noun or source.identifier(SUBJECTS)
    key = source.identifier(FIELDS)
    verb = source.any(LOOKUPS)
    name = source.any((f"{verb}_{noun}", f"{verb}_{noun}", _camel(verb, noun), noun, f"{noun}_{verb}"))
    description = source.any(
        (
            f"{_verb(verb).capitalize()} the {noun} of a {key}.",
            f"{_verb(verb).capitalize()} the {noun} for a {key}",
            f"Returns the {noun} of the given {key}.",
            f"The {noun} of a {key}",
        )
    )
    tool = _tool(source, name, description, {key: {"type": "string"}}, [key])
    return _again(source, Task(tool, "", {key: ""}, noun, "", simple=True))


def _again(source: Source, task: Task) -> Task:
    """Return the same task with another value if it is simple, or another task."""
    if not task.simple:
        return _lookup(source)
    (key,) = task.arguments
    value = " ".join(_value_word(source) for _ in range(source.any((1, 1, 2))))
    if source.chance(0.85):
        question = _asked(source, source.any(_LOOKUP_NOUNS).format(noun=task.about, value=value))
    else:
        question = source.one(_LOOKUP_FRAMES).format(noun=task.about, value=value)
    return Task(task.tool, question, {key: value}, task.about, f"The {task.about} of {value}", simple=True)


def _asked(source: Source, noun: str) -> str:
    if source.chance(0.3):
        return phrases.done(source, f"{_verb(source.any(LOOKUPS))} {noun}")
    return phrases.told(source, noun)


def _value_word(source: Source) -> str:
    return source.identifier(source.any((CITIES, NAMES, THINGS))).capitalize()


def _action(source: Source) -> Task:
    verb, thing = source.any(ACTIONS), source.identifier(OBJECTS)
    name = source.any((f"{verb}_{thing}", f"{verb}_{thing}", _camel(verb, thing), f"{thing}_{verb}"))
    arguments: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    count = source.any((1, 1, 2, 2, 3))
    while len(arguments) < count:
        value = structured.value(source)
        key = structured.field_name(source, value)
        arguments[key] = value
        properties[key] = _parameter(source, value)
    required = list(arguments)
    if source.chance(0.2):
        properties.setdefault(source.identifier(FIELDS), {"type": "string"})  # an optional one that nobody mentions
    frame = source.any(_ARGUMENT_FRAMES)
    listed = [frame.format(key=key, value=structured.said(value)) for key, value in arguments.items()]
    joined = phrases.listed(listed, ", " if source.chance(0.5) else " and ")
    wanted = source.any(_ACTION_VERBS).format(verb=verb, object=thing, arguments=joined)
    question = phrases.done(source, wanted)
    tool = _tool(source, name, f"{verb.capitalize()} a {thing}.", properties, required)
    return Task(tool, question, arguments, f"{verb} {thing}", f"{name} answered")


def _parameter(source: Source, value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, float):
        return {"type": "number"}
    if isinstance(value, int):
        return {"type": "number" if source.chance(0.2) else "integer"}
    if source.chance(0.15):
        choices = [value, *(source.identifier(LABELS) for _ in range(source.between(1, 2)))]
        source.random.shuffle(choices)
        return {"type": "string", "enum": choices}
    return {"type": "string"}


def _tool(source: Source, name: str, description: str, properties: dict[str, Any], required: list[str]) -> Tool:
    if source.chance(0.3):
        for key, parameter in properties.items():
            parameter["description"] = f"The {key}" + source.any(("", ".", f" of the {source.identifier(OBJECTS)}"))
    parameters: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    if source.chance(0.1):
        parameters["additionalProperties"] = False
    description += source.any(_MORE) if source.chance(0.2) else ""
    function = {"name": name, "description": description, "parameters": parameters}
    if source.chance(0.1):
        del function["description"]
    return {"type": "function", "function": function}


def _outcome(source: Source, task: Task) -> tuple[str, str]:
    """Return a tool's result, and the model's answer from it."""
    if source.chance(0.1):
        problem = source.any(("not found", "timed out", "permission denied", "no connection", source.invented()))
        return json.dumps({"error": problem}), f"{task.name} failed: {problem}."
    if source.chance(0.4):
        value = structured.said(structured.value(source))
        return value, f"{task.topic}: {value}."
    facts: dict[str, Any] = {}
    for _ in range(source.between(1, 3)):
        value = structured.value(source)
        facts[structured.field_name(source, value)] = value
    told = ", ".join(f"{key} {structured.said(value)}" for key, value in facts.items())
    return json.dumps(facts, ensure_ascii=False), f"{task.topic}: {told}."


def _verb(verb: str) -> str:
    return verb.replace("_", " ")


def _camel(verb: str, noun: str) -> str:
    head, *rest = f"{verb}_{noun}".split("_")
    return head + "".join(part.capitalize() for part in rest)
