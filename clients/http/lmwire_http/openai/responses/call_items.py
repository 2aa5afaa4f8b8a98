"""Items of the calls that the model makes, and the events about them."""

from collections.abc import Iterator, Sequence

import msgspec

from lmwire import ToolCallDelta

from ...inference.answers import ArgumentsBuffer
from ...inference.call_ids import OPENAI_PREFIX, client_call_id
from .items import Call, CustomToolCall, FunctionCall, Status, item_id
from .stream_events import ArgumentsDelta, ArgumentsDone, Event, InputDelta, InputDone, ItemAdded, ItemDone
from .tool_set import ToolSet, input_of


def call_item(deltas: Sequence[ToolCallDelta], tools: ToolSet, status: Status) -> Call:
    """Return the item of a call.

    Args:
        deltas: All deltas of the call.
        tools: The tools that the model can call.
        status: `completed`, or `incomplete` if the call was cut off.
    """
    buffer = ArgumentsBuffer()
    arguments = "".join(buffer.next_delta(delta.arguments, delta.complete) for delta in deltas)
    tool = tools.called(deltas[0].name or "")
    call_id = client_call_id(deltas[0].call_id, OPENAI_PREFIX)
    if not tool.is_custom:
        id = item_id("fc")
        return FunctionCall(
            id=id, call_id=call_id, name=tool.name, namespace=tool.namespace, arguments=arguments, status=status
        )
    # A tool cannot take the unfinished JSON text of a call that was cut off for a whole input.
    input = input_of(arguments) if status == "completed" else arguments
    return CustomToolCall(
        id=item_id("ctc"), call_id=call_id, name=tool.name, namespace=tool.namespace, input=input, status=status
    )


def call_events(item: Call, index: int) -> Iterator[Event]:
    """Yield the events about a call, which are sent together.

    Args:
        item: The item of the call.
        index: Its place in the output.
    """
    id = item.id or ""
    match item:
        case FunctionCall(name=name, arguments=arguments):
            yield ItemAdded(output_index=index, item=msgspec.structs.replace(item, arguments="", status="in_progress"))
            yield ArgumentsDelta(item_id=id, output_index=index, delta=arguments)
            yield ArgumentsDone(item_id=id, output_index=index, name=name, arguments=arguments)
        case CustomToolCall(input=input):
            yield ItemAdded(output_index=index, item=msgspec.structs.replace(item, input="", status="in_progress"))
            yield InputDelta(item_id=id, output_index=index, delta=input)
            yield InputDone(item_id=id, output_index=index, input=input)
    yield ItemDone(output_index=index, item=item)
