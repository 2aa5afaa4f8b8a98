"""The test that shows the effect of each option of each command.

A new option needs a row: the file and the test that fails if the option has no effect. A test that the option is
accepted, or passed on, is not enough.
"""

from typing import Final

_BENCHMARKS: Final = ("pipe", "generation", "mixed", "cache", "draft", "vision", "http")
_SAVES: Final = "cli/test_bench_compare.py::test_a_result_is_saved_by_version_and_machine"
_MEASURES: Final = "cli/test_bench.py::test_it_measures_every_figure"
_CHAT: Final = "cli/chat/test_chat.py::test_every_option_of_an_answer_reaches_the_request"
_LOAD: Final = "cli/test_options.py::test_every_option_of_a_load_reaches_it"
_KIT: Final = "conformance/test_command.py"
_HOST_KIT: Final = "conformance_host/test_kit.py"
_SERVE: Final = "http/server/test_options.py"
_LAUNCH = "launch/test_launch.py"
_ANSWERS: Final = "http/server/test_answer_options.py"

CHECKS: Final[dict[str, dict[str, str]]] = {
    "lmwire": {"--version": "cli/test_arguments.py::test_the_version_is_the_packages"},
    "worker": {
        "--memory-limit": "faults/test_memory.py::test_loads_and_requests_stay_within_a_limit",
        "--cache-dir": "worker/test_disk_cache_restart.py::"
        "test_the_first_answer_of_a_restarted_worker_begins_with_what_the_last_one_kept",
        "--cache-disk-bytes": "cli/test_options.py::test_a_worker_keeps_files_up_to_its_disk_budget",
        "--media-dir": "media/test_worker.py::test_a_bad_image_ends_its_own_request_with_its_path",
        "--media-urls": "media/test_worker.py::test_an_address_is_resolved_where_that_is_allowed",
        "--template-dir": "generation/models/test_chat_templates.py::test_a_load_chooses_a_template_of_a_folder",
        "--model": "worker/test_default_model.py::test_a_load_without_a_path_loads_the_default_model",
        "--process-group": "worker/test_exits.py::test_a_worker_can_lead_a_process_group",
        "--mock": "cli/test_arguments.py::test_worker_is_a_worker_on_the_commands_own_pipes",
        "--help": "cli/test_options.py::test_help_lists_every_option",
        "--version": "cli/test_options.py::test_a_worker_shows_its_version",
    },
    "mock": {
        "--process-group": "worker/test_exits.py::test_a_worker_can_lead_a_process_group",
        "--model": "worker/test_default_model.py::test_a_mock_has_a_default_model_too",
        "--text": "mock/test_replies.py::test_the_answer_can_be_the_same_for_every_request",
        "--token-ms": "mock/test_replies.py::test_tokens_take_the_time_that_they_are_given",
        "--scenario": "mock/test_scenario.py::test_a_reply_is_given_token_by_token",
        "--fault": "mock/test_faults.py::test_it_dies_within_an_answer",
        "--list-faults": "mock/test_faults.py::test_the_list_is_printed_with_parameters_and_their_defaults",
    },
    "chat": {
        "MODEL": "cli/chat/test_chat.py::test_without_a_model_it_uses_the_built_in_one",
        "--adapter": _LOAD,
        "--draft": "cli/test_options.py::test_chat_shows_the_number_of_drafted_tokens",
        "--context-len": "cli/chat/test_chat.py::test_options_reach_the_load",
        "--kv-bits": _LOAD,
        "--dtype": _LOAD,
        "--force": _LOAD,
        "--generation-config": _LOAD,
        "--prompt": "cli/chat/test_chat.py::test_a_prompt_gets_one_answer_as_plain_text",
        "--image": "cli/chat/test_chat.py::test_images_are_sent_with_the_prompt",
        "--resume": "cli/chat/test_chat_terminal.py::test_the_last_conversation_can_be_resumed",
        "--system": _CHAT,
        "--mcp-config": "cli/chat/test_chat_tools.py::"
        "test_on_a_terminal_each_call_is_asked_for_until_one_is_allowed_for_good",
        "--allow-tool": "cli/chat/test_chat_tools.py::test_a_pipeline_calls_only_what_an_option_allows",
        "--max-tokens": "cli/chat/test_chat.py::test_options_reach_the_request",
        **dict.fromkeys(
            (
                *("--temperature", "--top-p", "--top-k", "--min-p", "--xtc-probability", "--xtc-threshold"),
                *("--repetition-penalty", "--presence-penalty", "--frequency-penalty", "--truncate", "--seed"),
                *("--stop", "--reasoning", "--reasoning-effort", "--reasoning-budget", "--schema", "--tools"),
            ),
            _CHAT,
        ),
        "--worker": "cli/chat/test_chat.py::test_a_prompt_gets_one_answer_as_plain_text",
    },
    "models": {
        "--all": "cli/test_models.py::test_all_shows_why_a_model_cannot_run",
        "--json": "cli/test_models.py::test_for_people_it_is_a_table",
        "--tool-formats": "cli/test_models.py::test_the_formats_of_tool_calls_are_listed_with_their_models",
    },
    "config show": {
        "COMMAND": "cli/test_config.py::test_each_value_is_shown_with_its_source",
        "--json": "cli/test_config.py::test_each_value_is_shown_with_its_source",
    },
    "ps": {
        "--json": "cli/test_ps.py::test_a_program_gets_the_same_as_json",
        "--api-key": "cli/test_ps.py::test_a_server_with_a_key_is_asked_with_it",
    },
    "doctor": {
        "MODEL": "cli/test_doctor.py::test_a_given_models_format_of_tool_calls_is_named",
        "--offline": "cli/test_doctor.py::test_the_hub_is_not_asked_offline",
        "--json": "cli/test_doctor.py::test_it_finds_this_machine_able_and_says_so_as_json",
    },
    "pull": {
        "MODEL": "cli/test_pull.py::test_a_model_is_downloaded_and_its_folder_printed",
        "--revision": "cli/test_pull.py::test_a_revision_is_downloaded_beside_the_main_one",
    },
    "rm": {
        "MODEL": "cli/test_rm.py::test_a_model_is_removed_with_all_it_has",
        "--yes": "cli/test_rm.py::test_without_a_terminal_it_removes_only_what_yes_confirms",
    },
    "service install": {"--dry-run": "shell/test_service.py::test_a_dry_run_prints_the_file_and_changes_nothing"},
    "completion": {
        "SHELL": "shell/test_completion.py::test_bash_completes_commands_options_choices_and_models",
    },
    "schema": {"--meta": "cli/test_arguments.py::test_schema_prints_the_committed_files"},
    **{
        f"bench {benchmark}": {
            "--model": "cli/test_bench.py::test_one_draft_is_always_right_and_the_other_never"
            if benchmark == "draft"
            else _MEASURES,
            "--tokens": "cli/test_options.py::test_a_benchmark_uses_its_tokens_and_rounds",
            "--rounds": "cli/test_options.py::test_a_benchmark_uses_its_tokens_and_rounds",
            "--json": "cli/test_options.py::test_a_benchmark_uses_its_tokens_and_rounds",
            "--plot": "cli/test_bench_plot.py::test_a_benchmark_plots_its_results",
            "--save": _SAVES,
        }
        for benchmark in _BENCHMARKS
    },
    "bench ranks": {
        **dict.fromkeys(("--model", "--ranks"), _MEASURES),
        **dict.fromkeys(
            ("--tokens", "--rounds", "--json"), "cli/test_options.py::test_a_benchmark_uses_its_tokens_and_rounds"
        ),
        "--plot": "cli/test_bench_plot.py::test_a_benchmark_plots_its_results",
        "--save": _SAVES,
    },
    "bench agents": {
        **dict.fromkeys(("--model", "--shared-tokens"), _MEASURES),
        **dict.fromkeys(
            ("--tokens", "--rounds", "--json"), "cli/test_options.py::test_a_benchmark_uses_its_tokens_and_rounds"
        ),
        "--plot": "cli/test_bench_plot.py::test_a_benchmark_plots_its_results",
        "--save": _SAVES,
    },
    "bench start": {
        **dict.fromkeys(
            ("--tokens", "--rounds", "--json"), "cli/test_options.py::test_a_benchmark_uses_its_tokens_and_rounds"
        ),
        "--plot": "cli/test_bench_plot.py::test_a_benchmark_plots_its_results",
        "--save": _SAVES,
    },
    "bench hosts": {
        **dict.fromkeys(
            ("--tokens", "--rounds", "--json"), "cli/test_options.py::test_a_benchmark_uses_its_tokens_and_rounds"
        ),
        "--plot": "cli/test_bench_plot.py::test_a_benchmark_plots_its_results",
        "--save": _SAVES,
    },
    "bench compare": {
        "BEFORE": "cli/test_bench_compare.py::test_a_figure_changed_if_the_rounds_lie_apart",
        "AFTER": "cli/test_bench_compare.py::test_a_figure_changed_if_the_rounds_lie_apart",
    },
    "bench plot": {
        "RESULTS": "cli/test_bench_plot.py::test_files_of_earlier_runs_are_plotted",
        "--plot": "cli/test_bench_plot.py::test_files_of_earlier_runs_are_plotted",
    },
    "conformance worker": {
        "COMMAND": f"{_KIT}::test_passed_cases_are_listed_and_the_exit_code_is_0",
        "--model": "cli/test_options.py::test_the_kit_loads_the_model_that_is_named",
        "--only": f"{_KIT}::test_passed_cases_are_listed_and_the_exit_code_is_0",
        "--baseline": f"{_KIT}::test_a_known_failure_exits_0_and_a_stale_entry_1",
        "--junit": f"{_KIT}::test_a_failure_is_shown_with_both_lines_and_the_exit_code_is_1",
        "--json": f"{_KIT}::test_a_failure_is_shown_with_both_lines_and_the_exit_code_is_1",
        "--timeout": "cli/test_options.py::test_a_kit_waits_for_its_timeout",
    },
    "conformance host": {
        "COMMAND": f"{_HOST_KIT}::test_the_command_reports_and_exits_with_0_or_1",
        "--only": f"{_HOST_KIT}::test_the_command_reports_and_exits_with_0_or_1",
        "--baseline": f"{_HOST_KIT}::test_a_baseline_excuses_a_failure_and_nothing_else",
        "--junit": "cli/test_options.py::test_a_kit_waits_for_its_timeout",
        "--json": f"{_HOST_KIT}::test_the_command_reports_and_exits_with_0_or_1",
        "--timeout": "cli/test_options.py::test_a_kit_waits_for_its_timeout",
    },
    "bundle": {
        "FOLDER": "bundle/test_building.py::test_what_exists_is_not_overwritten",
        "--extra": "bundle/test_building.py::test_the_packages_of_an_extra_are_included_if_it_is_named",
        "--check": "bundle/test_manifest.py::test_each_difference_is_named",
    },
    "launch": {
        "AGENT": f"{_LAUNCH}::test_an_agent_uses_a_server_that_is_started_for_it",
        "--model": f"{_LAUNCH}::test_a_model_is_chosen_by_name_and_needs_one_among_several",
        "--url": f"{_LAUNCH}::test_an_agent_uses_a_running_server_and_the_server_stays",
        "--api-key": f"{_LAUNCH}::test_an_api_key_reaches_the_agent_and_is_not_printed",
    },
    "serve": {
        "MODEL": f"{_SERVE}::test_the_models_that_are_named_are_served_and_no_others",
        "--preload": "http/pool/test_readiness.py::test_a_server_that_loads_is_alive_and_not_ready",
        "--dtype": "generation/models/test_dtype.py::test_a_load_converts_the_numbers_that_are_not_quantized",
        "--only": "http/pool/test_model_resolver.py::test_other_models_are_served_too_if_that_was_asked_for",
        "--download": f"{_SERVE}::test_a_model_is_downloaded_for_a_request_if_that_is_allowed",
        "--adapter": f"{_SERVE}::test_an_adapter_changes_the_answers",
        "--draft": f"{_SERVE}::test_a_draft_model_has_tokens_accepted_that_it_proposed",
        "--tool-format": "generation/models/test_chat_templates.py::test_a_load_may_name_the_format_of_tool_calls",
        "--chat-template": f"{_SERVE}::test_a_chat_template_is_chosen_by_name",
        "--template-dir": f"{_SERVE}::test_a_chat_template_is_chosen_by_name",
        "--trust-remote-code": f"{_SERVE}::test_code_of_a_named_model_runs_only_if_it_is_trusted",
        "--context-len": f"{_SERVE}::test_a_shorter_context_holds_less",
        "--generation-config": f"{_SERVE}::test_a_model_has_its_own_sampling_defaults",
        "--kv-bits": f"{_SERVE}::test_keys_and_values_of_fewer_bits_are_others",
        "--env-file": "http/server/test_environment.py::"
        "test_a_file_in_the_current_directory_is_read_only_if_it_is_named",
        "--reasoning-field": f"{_ANSWERS}::test_the_reasoning_has_the_name_that_the_operator_chose",
        "--truncate-inputs": "http/openai/test_embeddings.py::"
        "test_a_text_that_is_too_long_is_cut_where_the_request_or_the_server_says_so",
        "--strict-tools": f"{_ANSWERS}::test_arguments_follow_the_schema_on_a_strict_server_unless_the_request_says_no",
        "--reasoning": f"{_ANSWERS}::test_a_server_turns_reasoning_on_unless_the_request_turns_it_off",
        "--force-reasoning": f"{_ANSWERS}::test_an_operator_can_force_reasoning_on_or_off",
        "--reasoning-start": f"{_ANSWERS}::test_the_markers_of_reasoning_can_be_named",
        "--reasoning-end": f"{_ANSWERS}::test_the_markers_of_reasoning_can_be_named",
        "--otlp-endpoint": "http/requests/test_traces.py::"
        "test_the_option_names_the_collector_and_the_last_spans_are_sent_at_the_end",
        "--host": f"{_SERVE}::test_the_host_is_the_given_one",
        "--port": f"{_SERVE}::test_the_port_is_the_given_one",
        "--uds": "http/server/test_sockets.py::test_a_server_serves_on_a_unix_socket_and_removes_it",
        "--public": "http/server/test_sockets.py::test_other_machines_are_let_in_with_a_key_or_if_configured",
        "--api-key": "http/server/test_sockets.py::test_other_machines_are_let_in_with_a_key_or_if_configured",
        "--api-key-file": "http/requests/test_api_keys.py::test_any_key_is_accepted_as_a_bearer_token",
        "--mcp-config": "page/test_tools.py::test_a_call_runs_only_after_the_user_has_allowed_it",
        "--mcp-timeout": "http/server/test_mcp.py::test_the_servers_of_the_file_are_those_of_the_settings",
        "--page": "page/test_endpoints.py::"
        "test_the_page_is_open_where_the_api_needs_a_key_and_absent_where_it_is_switched_off",
        "--cors": "http/requests/test_api_keys.py::test_without_keys_a_page_that_was_named_is_served",
        "--log-format": "http/requests/test_logs.py::test_with_log_format_json_a_request_is_a_json_object",
        "--log-level": "http/requests/test_logs.py::test_less_important_lines_are_left_out",
        "--max-tokens": f"{_SERVE}::test_answers_to_requests_without_a_limit_have_the_servers",
        "--memory": f"{_SERVE}::test_a_model_that_is_larger_than_the_memory_is_refused",
        "--memory-wait": f"{_SERVE}::test_a_request_waits_for_memory_no_longer_than_the_given_time",
        "--idle": f"{_SERVE}::test_a_model_that_is_not_used_leaves_memory",
        "--max-queue": "http/pool/test_served_models.py::test_more_requests_than_may_wait_learn_when_to_retry",
        "--strict": "http/requests/test_unknown_fields.py::test_a_strict_server_refuses_it",
        "--usage-chunk": "http/openai/test_usage_chunk.py::test_the_usage_chunk_repeats_the_last_choice_on_request",
        "--max-body": f"{_SERVE}::test_a_body_that_is_too_large_is_refused",
        "--image-group": "http/openai/test_image_groups.py::test_an_option_sets_the_default",
        "--keep-alive": "http/requests/test_waiting_events.py::test_a_stream_that_waits_sends_events_at_intervals",
        "--client-timeout": "http/server/test_client_timeouts.py::test_a_body_that_stops_coming_is_given_up",
        "--drain": "http/server/test_shutdown.py::test_a_request_that_exceeds_the_shutdown_time_gets_an_error",
        "--stop-at-eof": "http/server/test_shutdown.py::test_the_end_of_stdin_ends_it_in_order_if_asked",
        "--stored": f"{_SERVE}::test_the_oldest_stored_response_is_dropped_at_the_limit",
        "--replicas": f"{_SERVE}::test_a_model_has_as_many_workers_as_asked_for",
        "--worker": "http/openai/test_transcriptions.py::test_what_is_said_comes_as_text",
        "--cache-dir": f"{_SERVE}::test_the_disk_cache_has_a_folder_and_a_size",
        "--cache-disk": f"{_SERVE}::test_the_disk_cache_has_a_folder_and_a_size",
        "--media-dir": "http/requests/test_media_inputs.py::test_a_file_is_seen_as_if_it_came_with_the_request",
        "--media-urls": "http/requests/test_media_inputs.py::test_an_address_is_looked_up_only_where_that_is_allowed",
        "--request-templates": "http/openai/test_chat_unsupported_fields.py::"
        "test_a_requests_own_template_is_refused_unless_the_server_allows_it",
        "--any-model-name": "http/requests/test_model_names.py::test_any_name_stands_for_the_one_model_if_allowed",
        "--allow-paths": "http/pool/test_served_models.py::test_a_folder_is_served_only_where_that_was_allowed",
        "--host-name": "http/requests/test_origin_guard.py::test_a_request_for_an_allowed_host_name_is_served",
        "--body-timeout": "http/server/test_client_timeouts.py::"
        "test_a_body_that_comes_too_slowly_is_given_up_though_it_never_stops",
        "--max-connections": "http/server/test_client_timeouts.py::"
        "test_the_longest_idle_connection_is_closed_for_a_new_one",
        "--step-limit": "http/pool/test_hangs.py::"
        "test_requests_on_a_worker_that_hangs_end_with_an_error_and_the_next_gets_another_worker",
    },
}
