"""docs/migrating.md: a row that says "the same" has a test that shows it."""

import re
from typing import Final

from support.process.lmwire_command import REPOSITORY

CELL: Final = re.compile(r"(?<!\\)\|")
CLAIM: Final = re.compile(r"\bthe same\b(?! server)")
SHOWN: Final = {
    # What every system has
    "Sampling": "http/responses/test_responses.py::test_options_reach_the_worker",
    "Tools": "http/openai/test_chat.py::test_a_tool_can_be_required_or_forbidden",
    "Images, sounds": "http/openai/test_chat_images.py::test_images_are_seen",
    # MLXServer
    "`gemma`, `qwen`": "generation/models/test_hub.py::test_an_alias_names_a_model_on_disk",
    # It plays the transcript m-5-openai-shapes, on the pipe.
    "`stop` as a string or a list": "conformance/test_workers.py::test_the_mock_worker_passes",
    "`tool_code` blocks of Gemma": "generation/test_tool_code.py::test_a_positional_argument_is_that_of_the_signature",
    "`<tool_call>` of Qwen": "tool_parsers/test_tool_calls.py::"
    "test_a_call_of_a_function_that_nobody_offered_is_read_too",
    "text parts joined by a newline": "http/openai/test_message_shapes.py::test_the_prompt_is_the_same",
    "the assistant's turn first; a tool's message without `tool_call_id`": "http/openai/test_chat_templates.py::"
    "test_a_conversation_that_begins_with_the_assistant_is_answered",
    "OpenAI's `image_url`, calls with `function`": "http/openai/test_message_shapes.py::"
    "test_an_image_may_be_its_url_alone",
    # mlx-knife
    "2048 tokens by default for vision": "http/openai/test_image_groups.py::"
    "test_an_answer_about_an_image_has_a_default_length",
    "media of earlier turns become a note for a text model": "http/requests/test_media_of_earlier_turns.py::"
    "test_an_image_of_an_earlier_turn_is_a_note",
    "`error.retryable`, `request_id`, `X-Request-ID`": "http/requests/test_error_bodies.py::"
    "test_an_error_has_its_status_the_requests_id_and_whether_to_retry",
    "`/docs`, `/health`": "http/requests/test_docs_page.py::test_the_docs_pages_own_requests_are_served",
    # proxy-inference-engine
    "`MODEL_PATH` in `.env`": "http/server/test_environment.py::test_model_path_of_a_file_names_the_model",
    "`top_p` 0, `repetition_penalty` 0": "http/requests/test_aliases.py::"
    "test_zero_turns_top_p_and_the_repetition_penalty_off",
    "`tool_choice`, `parallel_tool_calls`, `response_format`": "http/openai/test_chat.py::"
    "test_an_answer_is_parsed_into_the_model_that_describes_it",
    "`max_completion_tokens` of completions, default 256": "http/completions/test_completions.py::"
    "test_a_text_ends_after_16_tokens_unless_told_otherwise",
    "`best_of`, `n`": "http/completions/test_completions_best_of.py::"
    "test_the_best_answers_have_the_highest_mean_log_probability",
    "`top_k`, `min_p`; `top_k` 50 by default in chat": "http/responses/test_responses.py::"
    "test_a_response_repeats_the_request",
    "`logprobs`, `top_logprobs`": "http/openai/test_chat.py::test_log_probabilities_come_for_each_token_of_the_text",
    "`/docs`, `/openapi.json`": "http/requests/test_openapi.py::test_the_openapi_document_has_every_endpoint",
    # go-mlx
    "`load`, `generate`, `chat`, `info`, `cancel`, `quit`": "bridge/test_sessions.py::"
    "test_a_piped_script_is_answered_in_the_bridges_shapes_and_in_order",
    "`max_tokens` 256, `temperature` 0 by default": "bridge/test_sessions.py::test_max_tokens_is_256_unless_given",
    "`top_p`, `top_k`, `min_p`, `repeat_penalty`": "bridge/test_sessions.py::"
    "test_a_real_model_answers_a_bridge_as_it_answers_version_1",
    "unknown keys: ignored": "bridge/test_sessions.py::test_clamped_and_ignored_fields_are_reported_on_stderr",
    "messages with `name`, any role": "bridge/test_requests.py::test_the_name_of_a_speaker_reaches_the_template",
    "`vocab_size`": "bridge/test_sessions.py::test_a_real_model_answers_a_bridge_as_it_answers_version_1",
    "no chat template: `role: content` lines": "prompts/test_prompts.py::"
    "test_a_model_without_a_template_reads_a_line_for_each_message",
    "one line a token, `tokens_generated`": "bridge/test_requests.py::"
    "test_each_counted_token_has_one_line_the_end_of_turn_too",
    "all text as the model writes it": "tiny_model/test_built_in_model.py::test_plain_text_has_its_thinking_as_written",
    "errors such as `chat: no model loaded`, `load: missing 'path'`": "bridge/test_requests.py::"
    "test_errors_begin_with_the_command",
    "`inspect`": "bridge/test_requests.py::test_inspect_answers_that_there_is_nothing",
    "no mlx-lm: an error for each request": "bridge/test_requests.py::"
    "test_without_lmwire_each_request_is_answered_with_what_to_install",
    # tabbyAPI
    "`template_vars`, `chat_template_kwargs`": "http/openai/test_chat_templates.py::"
    "test_template_variables_have_three_names",
    "`response_prefix`": "http/openai/test_chat_templates.py::test_tabbyapis_prefix_begins_the_answer",
    "`add_generation_prompt: false`": "prompts/test_prompts.py::"
    "test_without_generation_prompt_the_prompt_is_transformers_own",
    "`continue_final_message`": "http/openai/test_chat_templates.py::"
    "test_the_final_message_is_continued_or_closed_as_in_vllm",
    "`functions`": "http/openai/test_message_shapes.py::test_functions_are_answered_with_a_function_call",
    "`reasoning_budget_tokens` and its aliases": "http/requests/test_aliases.py::"
    "test_the_budget_of_reasoning_has_four_names_and_minus_one_is_none",
    "`reasoning` with `effort`, `enabled`, `max_tokens`": "http/requests/test_aliases.py::"
    "test_reasoning_has_openrouters_form_and_a_switch",
    "`json_schema`, `response_format` of the type `json`": "http/requests/test_aliases.py::"
    "test_tabbyapis_json_is_any_json_object",
    "`banned_tokens`, `ban_eos_token`, `min_length`, `max_length`, `stop_sequence`": "http/requests/test_aliases.py::"
    "test_other_names_of_an_answers_ends_reach_the_worker",
    "results in another order than their calls": "prompts/test_prompts_tools.py::"
    "test_results_have_the_order_of_their_calls",
    "`enable_thinking`, `reasoning_effort`": "http/requests/test_aliases.py::"
    "test_reasoning_can_be_turned_off_by_a_switch",
    "`rep_pen`, `penalty_range` and their aliases": "http/requests/test_aliases.py::"
    "test_tabbyapis_names_reach_the_worker",
    "`xtc_probability`, `xtc_threshold`": "http/requests/test_aliases.py::test_xtc_reaches_the_worker",
    "`dry_multiplier`, `dry_base`, `dry_allowed_length`, `dry_range`, `dry_sequence_breakers`": "http/requests/"
    "test_aliases.py::test_dry_and_banned_strings_reach_the_worker_in_every_form",
    "`banned_strings`": "http/requests/test_aliases.py::test_dry_and_banned_strings_reach_the_worker_in_every_form",
}
"""A test that shows it, by the first cell of the row."""


def test_a_row_that_says_the_same_has_a_test() -> None:
    page = (REPOSITORY / "docs/migrating.md").read_text(encoding="utf-8")
    start, rows = page.index("## What every system has"), []
    for heading, *lines in (part.splitlines() for part in page[start:].split("\n## ")):
        # The table of what every system has tells of the pipe and of HTTP. The others tell of here, and what differs.
        last = 3 if "every system" in heading else 2
        rows += [(cells[1], cells[2 : last + 1]) for line in lines if len(cells := CELL.split(line)) == 5]
    claims = {name.strip() for name, here in rows if any(CLAIM.search(cell) for cell in here)}
    assert claims == SHOWN.keys()


def test_each_of_these_tests_exists() -> None:
    for place in SHOWN.values():
        file, _, name = place.partition("::")
        assert f"def {name}(" in (REPOSITORY / "tests" / file).read_text(encoding="utf-8"), place
