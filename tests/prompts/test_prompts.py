"""Prompts: what the model is given of a request."""

from typing import Any

import pytest

from lmwire_protocol import AudioPart, Chat, Generate, ImagePart, Media, Message, RequestError, TextPart, Tokenize
from lmwire_worker.models.resolve import BUILTIN
from lmwire_worker.prompts.builder import Prompt, build_prompt
from lmwire_worker.prompts.tokenization import Encoder
from lmwire_worker.sandbox import Sandbox
from support.models.chat_templates import GEMMA3, GPT_OSS, LLAMA31, MISTRAL, PARTS_ONLY, PHI3, QWEN3
from support.runners.prompting import (
    HARMONY,
    PLAIN,
    QWEN,
    VOCABULARY,
    WEATHER,
    assistant,
    call,
    developer,
    prompt,
    result,
    system,
    tokenized,
    tokenizer,
    user,
)

IMAGE, SOUND = ImagePart(media=Media(path="/a.png")), AudioPart(media=Media(path="/a.wav"))


def refusal(*messages: Message, template: str | None = QWEN3, **fields: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        prompt(template, *messages, **fields)
    return caught.value


def generate(text: str | list[int], found: Any = None, vocabulary: int = VOCABULARY) -> Any:
    return build_prompt(Generate(prompt=text), Encoder(found or tokenizer(None)), vocabulary, QWEN)


# What the model reads


def test_the_tokens_of_a_chat_are_those_of_its_text() -> None:
    found = prompt(QWEN3, system("Be brief."), user("Grüße 🙂"))
    assert tokenizer(QWEN3).decode(found.tokens) == found.text
    assert found.text == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nGrüße 🙂<|im_end|>\n<|im_start|>assistant\n"
    )


def by_transformers(messages: list[dict[str, str]], **options: Any) -> Any:
    """Return the tokens that transformers itself makes of a conversation with the built-in model."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(BUILTIN / "tiny").apply_chat_template(messages, return_dict=False, **options)


def test_the_built_in_models_prompt_is_what_its_tokenizer_makes_of_it() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    expected = by_transformers(messages, add_generation_prompt=True)
    assert prompt(None, system("Be brief."), user("Hello")).tokens == list(expected)


def test_a_text_prompt_is_encoded_as_it_stands() -> None:
    found = generate("Once upon a time")
    assert tokenizer(None).decode(found.tokens) == found.text == "Once upon a time"
    assert found.opening == ""


def test_token_ids_are_used_as_they_are() -> None:
    assert generate([5, 6, 7]).tokens == [5, 6, 7]


@pytest.mark.parametrize(("text", "field"), [("", "prompt"), ([5, 600, 7], "prompt[1]")])
def test_a_prompt_that_is_empty_or_names_no_token_is_refused(text: str | list[int], field: str) -> None:
    with pytest.raises(RequestError) as caught:
        generate(text, vocabulary=512)
    assert (caught.value.code, caught.value.field) == ("invalid_request", field)


def test_tokens_become_the_text_that_they_are_the_tokens_of() -> None:
    text = "<|endoftext|>Once upon a time , Grüße"
    tokens = generate(text).tokens
    found = build_prompt(Tokenize(token_ids=tokens), Encoder(tokenizer(None)), VOCABULARY, QWEN)
    assert (found.tokens, found.text) == (tokens, text)


def test_a_token_that_the_model_does_not_have_has_no_text() -> None:
    with pytest.raises(RequestError) as caught:
        build_prompt(Tokenize(token_ids=[5, 600]), Encoder(tokenizer(None)), 512, QWEN)
    assert (caught.value.code, caught.value.field) == ("invalid_request", "token_ids[1]")


def test_no_beginning_of_text_is_doubled() -> None:
    from tokenizers.processors import TemplateProcessing

    found = tokenizer.__wrapped__("{{ bos_token }}{{ messages[0].content }}")
    found.special_tokens_map["bos_token"] = "<|endoftext|>"
    begin = found.bos_token_id
    found.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", begin)]
    )
    for text in ("Hello", "<|endoftext|>Hello"):
        assert generate(text, found).tokens.count(begin) == 1
    bare = Tokenize(prompt="Hello", add_special_tokens=False)
    assert build_prompt(bare, Encoder(found), VOCABULARY, QWEN).tokens.count(begin) == 0
    chat = Chat(messages=[user("Hello")])
    assert build_prompt(chat, Encoder(found), VOCABULARY, QWEN).tokens.count(begin) == 1


def test_a_model_without_a_template_reads_a_line_for_each_message() -> None:
    from tokenizers.processors import TemplateProcessing

    bare = tokenizer.__wrapped__(None)
    bare.chat_template = None
    messages = [system("Be brief."), user("Hi"), assistant("Hello"), user("Who?")]
    lines = "system: Be brief.\nuser: Hi\nassistant: Hello\nuser: Who?"
    found = build_prompt(Chat(messages=messages), Encoder(bare), VOCABULARY, PLAIN)
    assert (found.text, found.opening) == (f"{lines}\nassistant:", "\nassistant:")
    closed = Chat(messages=messages, add_generation_prompt=False)
    assert build_prompt(closed, Encoder(bare), VOCABULARY, PLAIN).text == lines
    bare.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", begin := bare.encode("<|endoftext|>")[0])]
    )
    assert build_prompt(closed, Encoder(bare), VOCABULARY, PLAIN).tokens[0] == begin
    given = Chat(messages=[user("Hi")], chat_template="{{ messages[0].content }}")
    assert build_prompt(given, Encoder(bare), VOCABULARY, PLAIN).text == "Hi"


# Roles


def test_developer_is_another_word_for_system() -> None:
    assert prompt(QWEN3, developer("Be brief."), user("Hi")) == prompt(QWEN3, system("Be brief."), user("Hi"))


def test_where_roles_must_alternate_neighbours_are_joined() -> None:
    found = prompt(GEMMA3, user("One"), user("Two"), assistant("A"), assistant("B"), user("Three"), syntax=PLAIN)
    assert "user\nOne\n\nTwo<end_of_turn>" in found.text
    assert "model\nA\n\nB<end_of_turn>" in found.text


@pytest.mark.parametrize("template", [QWEN3, LLAMA31, PHI3])
def test_elsewhere_neighbours_stay_apart(template: str) -> None:
    assert "One\n\nTwo" not in prompt(template, user("One"), user("Two"), syntax=PLAIN).text


@pytest.mark.parametrize("template", [GEMMA3, GPT_OSS, MISTRAL])
def test_a_late_system_message_that_a_template_would_drop_or_refuse_is_said_by_the_user(template: str) -> None:
    late = [system("Front."), user("One"), assistant("A"), system("Late."), user("Two")]
    text = prompt(template, *late, syntax=PLAIN).text
    assert text.index("A") < text.index("Late.") < text.index("Two")
    assert text.count("Front.") == text.count("Late.") == 1


def test_several_system_messages_at_the_front_are_one() -> None:
    text = prompt(QWEN3, system("One."), developer("Two."), user("Hi")).text
    assert text.startswith("<|im_start|>system\nOne.\n\nTwo.<|im_end|>")


# Parts


def test_text_parts_are_joined_as_they_are() -> None:
    parts = user([TextPart(text="a "), TextPart(text="b")])
    assert prompt(QWEN3, parts).text == prompt(QWEN3, user("a b")).text


def test_a_template_that_takes_parts_only_gets_parts() -> None:
    assert prompt(PARTS_ONLY, user("Hello"), syntax=PLAIN).text == "<user>Hello<assistant>"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([TextPart(text="Look:"), IMAGE], "Look:\n[1 image was attached]"),
        ([IMAGE, TextPart(text="Look"), IMAGE], "Look\n[2 images were attached]"),
        ([SOUND], "[1 sound was attached]"),
        ([IMAGE, SOUND], "[1 image and 1 sound were attached]"),
    ],
)
def test_media_become_a_note(parts: list[Any], text: str) -> None:
    assert f"user\n{text}<|im_end|>" in prompt(QWEN3, user(parts)).text


def test_strict_media_refuses_them() -> None:
    error = refusal(user("Hi"), user([TextPart(text="Look"), SOUND]), strict_media=True)
    assert (error.code, error.field) == ("unsupported", "messages[1].content[1]")


def test_where_no_model_can_be_shown_images_the_refusal_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    request = [user([IMAGE])]
    assert "pip install" not in refusal(*request, strict_media=True).message
    monkeypatch.setattr("lmwire_worker.prompts.turns.find_spec", lambda name: None)
    assert "pip install 'lmwire[vision]'" in refusal(*request, strict_media=True).message


# The opening


def test_the_opening_is_what_the_assistants_turn_has_already() -> None:
    found = prompt(QWEN3, user("Hi"), prefix="Sure, ")
    assert found.opening == "<|im_start|>assistant\nSure, "
    assert found.text.endswith(found.opening)


@pytest.mark.parametrize(("template", "opening"), [(MISTRAL, "[/INST]"), (PHI3, "<|end|>\n<|assistant|>\n")])
def test_the_opening_is_found_where_the_closed_conversation_does_not_end_before_it(template: str, opening: str) -> None:
    assert prompt(template, user("Hi"), syntax=PLAIN).opening == opening


def test_reasoning_that_the_template_starts_is_in_the_opening() -> None:
    always = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant><think>"
    assert prompt(always, user("Say <think>")).opening == "<assistant><think>"


def test_a_prefix_follows_the_header_of_a_reply() -> None:
    head = "<|start|>assistant<|channel|>final<|message|>"
    assert prompt(GPT_OSS, user("Hi"), prefix="Sure", syntax=HARMONY).opening == f"{head}Sure"
    own = "<|channel|>commentary<|message|>Sure"
    assert prompt(GPT_OSS, user("Hi"), prefix=own, syntax=HARMONY).opening == f"<|start|>assistant{own}"
    tools = prompt(GPT_OSS, user("Hi"), prefix="Sure", reasoning="off", tools=[WEATHER], syntax=HARMONY)
    assert tools.opening.endswith(f"<|message|><|end|>{head}Sure")


def test_a_template_may_refuse_to_leave_a_conversation_closed() -> None:
    strict = "{{ raise_exception('no') if not add_generation_prompt }}<{{ messages[-1].content }}><assistant>"
    assert prompt(strict, user("Hi"), syntax=PLAIN).opening == "><assistant>"


def test_a_template_comes_to_a_limit_where_it_does_so_only_without_an_opening() -> None:
    greedy = "{{ 'x'.ljust(99999999999) if not add_generation_prompt }}<{{ messages[-1].content }}>"
    with pytest.raises(RequestError, match="chat template needs more memory"):
        prompt(greedy, user("Hi"), syntax=PLAIN)


def test_a_prompt_is_one_question_to_the_templates_process(monkeypatch: pytest.MonkeyPatch) -> None:
    prompt(QWEN3, user("The template is known now."))
    questions: list[str] = []

    def ask(sandbox: Sandbox, question: dict[str, Any]) -> dict[str, Any]:
        questions.append(question["subject"])
        return real(sandbox, question)

    real = Sandbox.ask
    monkeypatch.setattr(Sandbox, "ask", ask)
    assert prompt(QWEN3, user("Hi")).opening == "<|im_start|>assistant\n"
    assert questions == ["opened"]


CONTINUED: dict[str, Any] = {"add_generation_prompt": False, "continue_final_message": True}


def test_the_final_message_is_continued_as_it_stands() -> None:
    found = prompt(LLAMA31, user("Hi"), assistant("Hello, I "), **CONTINUED, prefix="am", syntax=PLAIN)
    assert found.text.endswith("assistant<|end_header_id|>\n\nHello, I am")
    assert found.opening == "<|start_header_id|>assistant<|end_header_id|>\n\nHello, I am"


def test_a_users_message_can_be_continued_too() -> None:
    found = prompt(QWEN3, user("The sky is"), **CONTINUED)
    assert found.text == "<|im_start|>user\nThe sky is"
    assert found.opening == ""


def test_without_generation_prompt_the_last_turn_keeps_its_end() -> None:
    found = prompt(QWEN3, user("Hi"), assistant("Hello"), add_generation_prompt=False)
    assert found.text == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello<|im_end|>\n"
    assert found.opening == ""
    with_prefix = prompt(QWEN3, user("Hi"), add_generation_prompt=False, prefix="<|im_start|>critic\n")
    assert with_prefix.text == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>critic\n"


def test_without_generation_prompt_the_prompt_is_transformers_own() -> None:
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    expected = by_transformers(messages, add_generation_prompt=False)
    assert prompt(None, user("Hello"), assistant("Hi"), add_generation_prompt=False).tokens == list(expected)


def test_a_last_message_with_calls_can_be_closed_but_not_continued() -> None:
    called = [user("Paris?"), Message(role="assistant", tool_calls=[call()])]
    assert prompt(QWEN3, *called, add_generation_prompt=False).text.endswith("</tool_call><|im_end|>\n")
    assert refusal(*called, **CONTINUED).field == "continue_final_message"


def test_a_last_message_that_the_template_leaves_out_cannot_be_continued() -> None:
    error = refusal(user("Hi"), assistant("x"), **CONTINUED, chat_template="{{ messages[0].content }}")
    assert (error.code, error.field) == ("invalid_request", "continue_final_message")


# Templates


def test_a_given_template_takes_the_place_of_the_models_own() -> None:
    assert prompt(QWEN3, user("Hi"), chat_template="<{{ messages[0].content }}>", syntax=PLAIN).text == "<Hi>"


def test_template_args_are_its_variables() -> None:
    template = "{{ greeting }} {{ messages[0].content }}"
    assert prompt(QWEN3, user("you"), chat_template=template, template_args={"greeting": "Hi"}).text == "Hi you"


def test_documents_are_none_unless_they_are_given() -> None:
    template = "{{ documents | length if documents is not none else 'none' }}"
    assert prompt(template, user("Hi"), syntax=PLAIN).text == "none"
    assert prompt(template, user("Hi"), syntax=PLAIN, template_args={"documents": ["a"]}).text == "1"


@pytest.mark.parametrize("name", ["gretting", "messages", "tools", "add_generation_prompt"])
def test_a_template_arg_that_would_go_unheard_is_refused(name: str) -> None:
    template = "{{ greeting }} {{ messages[0].content }}"
    error = refusal(user("you"), chat_template=template, template_args={name: "Hi"})
    assert (error.code, error.field) == ("invalid_request", f"template_args.{name}")


def test_a_given_template_with_a_mistake_is_named_with_its_line() -> None:
    error = refusal(user("Hi"), chat_template="fine\n{% if %}")
    assert (error.code, error.field) == ("invalid_request", "chat_template")
    assert "line 2" in error.message


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages[0].content.__class__.__mro__[1].__subclasses__()[0] }}",
        "{{ messages.append(1) }}",
        "{{ nothing.at.all }}",
        "{{ 1 // 0 }}",
        "{% for i in range(90000) %}{{ 'x' * 10000 }}{% endfor %}",
        "{{ 'x' * 10000000000 }}",
        "{{ 10000000000 * [1] }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    ],
)
def test_a_given_template_that_fails_breaks_out_or_never_ends_is_at_fault(template: str) -> None:
    error = refusal(user("Hi"), chat_template=template)
    assert (error.code, error.field) == ("invalid_request", "chat_template")


@pytest.mark.parametrize("given", [False, True])
def test_what_a_template_refuses_on_purpose_is_the_messages_fault(given: bool) -> None:
    template = "{{ raise_exception('only cats') }}"
    fields = {"chat_template": template} if given else {}
    error = refusal(user("dog"), template=QWEN3 if given else template, **fields)
    assert (error.code, error.field) == ("invalid_request", "messages")
    assert "only cats" in error.message


def test_a_models_own_template_that_is_no_jinja_is_unsupported() -> None:
    error = refusal(user("Hi"), template="{% if %}")
    assert error.code == "unsupported" and "chat_template" in error.message


def test_a_model_with_several_templates_uses_the_one_for_tools_when_there_are_tools() -> None:
    found = tokenizer.__wrapped__(None)
    found.chat_template = {"default": "default {{ messages[0].content }}", "tool_use": QWEN3}
    asked = Chat(messages=[user("Hi")]), Chat(messages=[user("Hi")], tools=[WEATHER])
    plain, with_tools = (build_prompt(request, Encoder(found), VOCABULARY, QWEN).text for request in asked)
    assert plain == "default Hi" and "get_weather" in with_tools


# tokenize


def test_tokenize_gives_a_text_prompt_as_generate_takes_it() -> None:
    assert tokenized(None, prompt="Hello there") == generate("Hello there")


def test_tokenize_gives_messages_as_chat_takes_them() -> None:
    messages = [system("Be brief."), user([TextPart(text="Look"), IMAGE])]
    assert tokenized(QWEN3, messages=messages, prefix="So") == prompt(QWEN3, *messages, prefix="So")


# Templates in Python


def test_a_template_in_python_is_used_as_any_other() -> None:
    from mlx_lm.chat_templates import deepseek_v32

    found = tokenizer.__wrapped__(None)
    found.renderer = deepseek_v32.apply_chat_template

    def texts(**fields: Any) -> Prompt:
        request = Chat(messages=[user("Hi"), assistant("", tool_calls=[call()]), result("sunny")], **fields)
        return build_prompt(request, Encoder(found), VOCABULARY, QWEN)

    thinking, silent = texts(tools=[WEATHER]), texts(reasoning="off")
    assert thinking.text.endswith("<think>") and silent.text.endswith("</think>")
    assert "sunny" in thinking.text and '"city": "Paris"' in thinking.text
