"""Workers with faults in tool calls."""

from typing import Any

from lmwire_protocol import TextPart, decoding, encoding, events, messages
from lmwire_worker.session.output_queue import OutputQueue
from support.protocol.mutation import mutant, replace, wrap
from worker_mutants.changes import change_calls, change_deltas, change_results


@mutant("P-4", "p-1-required")
def leaves_a_call_without_an_end() -> None:
    change_calls(lambda delta: setattr(delta, "complete", None))


@mutant("P-4", "p-1-required")
def reports_stop_instead_of_tool_calls() -> None:
    change_results(lambda result: setattr(result, "finish_reason", result.finish_reason.replace("tool_calls", "stop")))


@mutant("Q-1", "p-1-required")
def loses_a_part_of_the_arguments() -> None:
    change_calls(lambda delta: setattr(delta, "arguments", delta.arguments.replace("true}", "")))


@mutant("Q-1", "p-1-required")
def counts_calls_from_one() -> None:
    change_calls(lambda delta: setattr(delta, "index", delta.index + 1))


@mutant("#tool_call", "p-1-required")
def gives_a_call_no_id() -> None:
    change_calls(lambda delta: setattr(delta, "call_id", None))


@mutant("P-1", "p-1-required")
def calls_what_was_not_named() -> None:
    change_calls(lambda delta: delta.name and setattr(delta, "name", "listen"))


@mutant("P-2", "p-2-no-calls")
def calls_what_it_may_not_call() -> None:
    def put_and_call(put: Any, self: OutputQueue, token: events.Token) -> None:
        put(self, token)
        self.put_stream(encoding.encode_event(events.ToolCall(id=token.id, index=0, call_id="c", name="look")))

    wrap(OutputQueue, "put_tokens", put_and_call)


@mutant("K-5", "p-1-required")
def attributes_no_text_to_a_call() -> None:
    change_deltas(lambda delta: setattr(delta, "is_call_text", False))


@mutant("K-5", "p-2-no-calls")
def attributes_all_text_to_a_call() -> None:
    change_deltas(lambda delta: setattr(delta, "is_call_text", True))


@mutant("M-5", "m-5-openai-shapes")
def shows_no_image_in_the_shape_of_openai() -> None:
    replace(messages.ImageUrlPart, "native", lambda part: TextPart(""))


@mutant("M-6", "m-6-open-calls")
def takes_a_result_of_no_call() -> None:
    replace(decoding, "with_call_ids", lambda command: command)
