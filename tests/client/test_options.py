"""Keywords and plain data reach the worker unchanged, and only if it has the features."""

import json
from typing import Any, cast, get_type_hints

import msgspec
import pytest

from lmwire import (
    ChatOptions,
    EmbedOptions,
    GenerateOptions,
    LoadOptions,
    PromptOptions,
    TemplateOptions,
    TranscribeOptions,
    UnsupportedByWorker,
    commands,
    options,
)
from lmwire.protocol.features import features_used
from lmwire_protocol import (
    DONE_CMD,
    FEATURES,
    Cache,
    CalledTool,
    Chat,
    ChoiceFormat,
    Command,
    ContextFile,
    Embed,
    Function,
    Generate,
    Generation,
    ImagePart,
    JsonObjectFormat,
    JsonSchemaFormat,
    LarkFormat,
    Load,
    Media,
    Message,
    NamedTool,
    Ping,
    RegexFormat,
    TextPart,
    Tokenize,
    Tool,
    Transcribe,
    decode_command,
)
from support.process.fake_worker import fake
from support.protocol.both_clients import MakeWorker, on_one_client

TOOL: options.ToolDict = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
MESSAGES: list[options.MessageDict] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "This?"}, {"type": "image", "media": {"path": "a.png"}}]},
    {"role": "assistant", "reasoning": "Hm.", "tool_calls": [{"id": "c", "name": "weather", "arguments": {}}]},
    {"role": "tool", "tool_call_id": "c", "name": "weather", "content": "fine"},
]
LOAD: LoadOptions = {
    "trust_remote_code": True,
    "adapter_path": "/adapters/poet",
    "chat_template_name": "chatml",
    "tool_format": "json_tools",
    "draft_path": "/models/small",
    "context_len": 4096,
    "kv_bits": 8,
    "dtype": "float32",
    "generation_config": True,
    "force": True,
    "reasoning_start": "<reason>",
    "reasoning_end": "</reason>",
}
OPTIONS: GenerateOptions = {
    "max_tokens": 9,
    "min_tokens": 1,
    "ignore_eos": True,
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 40,
    "min_p": 0.1,
    "xtc_probability": 0.5,
    "xtc_threshold": 0.2,
    "repetition_penalty": 1.1,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.2,
    "penalty_window": 0,
    "dry_multiplier": 0.8,
    "dry_base": 1.5,
    "dry_allowed_length": 3,
    "dry_range": 1024,
    "dry_sequence_breakers": ["\n"],
    "banned_strings": ["a tapestry of"],
    "logit_bias": {7: -100},
    "seed": 1,
    "stop": ["."],
    "include_stop": True,
    "logprobs": True,
    "top_logprobs": 5,
    "n": 2,
    "format": {"type": "regex", "pattern": "a+"},
    "truncate": "left",
    "cache": "pin",
    "cache_report": True,
    "timeout_ms": 5000,
}
PROMPT: PromptOptions = {
    **OPTIONS,
    "suffix": "upon",
    "context_files": [{"name": "a", "text": "b"}],
    "prompt_logprobs": True,
}
TEMPLATE: TemplateOptions = {
    "tools": [TOOL],
    "chat_template": "{{ messages }}",
    "template_args": {"today": None},
    "add_generation_prompt": False,
    "continue_final_message": True,
    "prefix": "Well,",
    "reasoning": "on",
    "reasoning_effort": "low",
}
CHAT: ChatOptions = {
    **OPTIONS,
    **TEMPLATE,
    "tool_choice": {"name": "weather"},
    "parallel_tool_calls": False,
    "reasoning_budget": 100,
    "strict_media": True,
}


def test_options_are_the_fields_of_the_commands() -> None:
    assert set(LoadOptions.__annotations__) == set(Load.__struct_fields__) - {"path"}
    assert set(GenerateOptions.__annotations__) == set(Generation.__struct_fields__)
    assert set(PromptOptions.__annotations__) == set(Generate.__struct_fields__) - {"prompt"}
    assert set(ChatOptions.__annotations__) == set(Chat.__struct_fields__) - {"messages"}
    assert set(TemplateOptions.__annotations__) == set(Tokenize.__struct_fields__) - {
        "prompt",
        "messages",
        "count_only",
        "add_special_tokens",
        "token_ids",
    }
    assert set(EmbedOptions.__annotations__) == set(Embed.__struct_fields__) - {"input", "encoding"}
    assert set(TranscribeOptions.__annotations__) == set(Transcribe.__struct_fields__) - {"audio"}


@pytest.mark.parametrize(
    ("dictionary", "struct"),
    [
        (options.MessageDict, Message),
        (options.CalledToolDict, CalledTool),
        (options.TextPartDict, TextPart),
        (options.MediaPartDict, ImagePart),
        (options.MediaDict, Media),
        (options.ToolDict, Tool),
        (options.FunctionDict, Function),
        (options.ContextFileDict, ContextFile),
        (options.NamedToolDict, NamedTool),
        (options.JsonObjectFormatDict, JsonObjectFormat),
        (options.JsonSchemaFormatDict, JsonSchemaFormat),
        (options.RegexFormatDict, RegexFormat),
        (options.LarkFormatDict, LarkFormat),
        (options.ChoiceFormatDict, ChoiceFormat),
    ],
)
def test_plain_data_has_the_fields_of_its_struct(dictionary: Any, struct: type[msgspec.Struct]) -> None:
    fields = {field.name: field.required or field.name == "type" for field in msgspec.structs.fields(struct)}
    if struct.__struct_config__.tag:
        fields["type"] = True
    if struct in (CalledTool, NamedTool):  # the client's types are those of the native shape alone
        fields = dict.fromkeys(fields.keys() - {"type", "function"}, True)
    assert set(get_type_hints(dictionary)) == set(fields)
    assert dictionary.__required_keys__ == {name for name, required in fields.items() if required}


@on_one_client
async def test_every_option_reaches_the_worker(make_worker: MakeWorker) -> None:
    async with make_worker(fake("ServesAll")) as worker:
        generated = json.loads(await worker.generate("Once", **PROMPT).text())
        answered = json.loads(await worker.chat(MESSAGES, **CHAT).text())
    given = json.loads(msgspec.json.encode(OPTIONS))
    assert {"cmd": "generate", "prompt": "Once", **PROMPT, **given}.items() <= generated.items()
    assert {"cmd": "chat", "messages": MESSAGES, **CHAT, **given}.items() <= answered.items()
    assert isinstance(decode_command(answered), Chat)


@on_one_client
async def test_structs_are_accepted_instead_of_plain_data(make_worker: MakeWorker) -> None:
    tool = Tool(function=Function("weather"))
    async with make_worker(fake("ServesAll")) as worker:
        stream = worker.chat([Message("user", "Hi")], tools=[tool], tool_choice=NamedTool("weather"))
        command = decode_command(json.loads(await stream.text()))
    assert command == Chat(messages=[Message("user", "Hi")], tools=[tool], tool_choice=NamedTool("weather"))


@on_one_client
async def test_a_prompt_is_tokenized_or_only_counted(make_worker: MakeWorker) -> None:
    async with make_worker(fake("ServesAll")) as worker:
        assert await worker.tokenize("one two") == ([0, 1], "onetwo")
        assert await worker.tokenize([{"role": "user", "content": "one"}], tools=[TOOL]) == ([0], "one")
        assert await worker.count_tokens("one two three") == 3


@on_one_client
async def test_a_feature_that_the_worker_lacks_is_not_sent(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker:
        with pytest.raises(
            UnsupportedByWorker, match=r"\(fake \) does not serve generate\.logprobs, generate\.n: "
        ) as failure:
            worker.generate("one", n=2, logprobs=True, temperature=1)
        assert (failure.value.code, failure.value.features) == ("unsupported", ["generate.logprobs", "generate.n"])
        with pytest.raises(UnsupportedByWorker, match="tokenize"):
            await worker.count_tokens("one")
        with pytest.raises(UnsupportedByWorker, match=r"load\.context_len"):
            await worker.load("x", context_len=10)
        assert await worker.generate("one", n=1, temperature=1).text() == "one"


@on_one_client
async def test_a_worker_that_ignores_reasoning_in_counts_still_counts_the_rest(make_worker: MakeWorker) -> None:
    asked: list[options.MessageDict] = [{"role": "user", "content": "one two"}]
    async with make_worker(fake("ServesWhatItIsTold", "tokenize")) as worker:
        assert await worker.count_tokens(asked, prefix="x", reasoning="auto") == 2
        for count in (worker.count_tokens, worker.tokenize):
            with pytest.raises(UnsupportedByWorker) as failure:
                await count(asked, reasoning="on")
            assert failure.value.features == ["tokenize.reasoning"]


@pytest.mark.parametrize(
    ("command", "features"),
    [
        (Ping(), set()),
        (Load(path="x", trust_remote_code=True), set()),
        (Load(path="x", kv_bits=4), {"load.kv_bits"}),
        (Generate(prompt="x", temperature=1.0, stop=["."]), set()),
        (Chat(messages=[Message("system", "x"), Message("user", [TextPart("x")])]), set()),
        (Tokenize(messages=[Message("developer", "x")], prefix="x"), {"tokenize"}),
        (Tokenize(messages=[Message("user", "x")], reasoning="off"), {"tokenize", "tokenize.reasoning"}),
        (Chat(messages=[Message("developer", "x")]), {"chat.messages.role.developer"}),
        (Chat(messages=[Message("user", [ImagePart(Media(path="x"))])]), {"chat.messages.content.image"}),
    ],
)
def test_only_additions_to_protocol_1_0_need_a_feature(command: Command, features: set[str]) -> None:
    assert features_used(command) == features


OPENAI_MESSAGES: list[Any] = [
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a/b.png"}}]},
    {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "content": "x"},
]
OPENAI_TOOL_CHOICE = {"type": "function", "function": {"name": "f"}}


def _split(given: PromptOptions | ChatOptions) -> tuple[Any, Any]:
    """Return the options without `format`, and `format`."""
    return {name: value for name, value in given.items() if name != "format"}, given.get("format")


def test_all_features_are_detected_in_commands() -> None:
    sound: options.MessageDict = {"role": "user", "content": [{"type": "audio", "media": {"data": ""}}]}
    every_feature = [
        commands.load_command("x", LOAD),
        Cache(action="clear"),
        commands.generate_command("x", *_split(PROMPT)),
        commands.chat_command([*MESSAGES, sound], *_split(CHAT)),
        commands.tokenize_command(MESSAGES, TEMPLATE, count_only=True),
        commands.tokenize_command("x", {}, count_only=True, add_special_tokens=False),
        commands.detokenize_command([1]),
        commands.embed_command(["x", {"type": "tokens", "token_ids": [1]}], {}),
        commands.transcribe_command({"data": ""}, {}),
        commands.speak_command("x", {}),
        commands.chat_command(OPENAI_MESSAGES, cast(Any, {"tool_choice": OPENAI_TOOL_CHOICE})),
        commands.tokenize_command(OPENAI_MESSAGES, {}, count_only=True),
    ]
    # A command of the client holds a list of stop strings, and names its model. `done.cmd` is of no command.
    never_sent = {"generate.stop.string", "chat.stop.string", "load.path.absent", DONE_CMD}
    assert set().union(*map(features_used, every_feature)) == set(FEATURES) - never_sent
