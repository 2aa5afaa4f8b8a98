import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { AnswerEvent, TokenEvent, ToolCallEvent } from "lmwire";

type BlockKind = "text" | "reasoning";

/** Turns the events of an answer into parts of the AI SDK's stream, in which each block has a start and an end. */
export class StreamParts {
  #block: { kind: BlockKind; id: string } | undefined;
  #blocks = 0;
  readonly #calls = new Map<number, { id: string; name: string; input: string }>();

  /** Yield the parts of an event. */
  *add(event: AnswerEvent): Generator<LanguageModelV4StreamPart> {
    if (event.event === "token" && event.token) yield* this.#addText(event);
    else if (event.event === "tool_call") yield* this.#addCall(event);
    else if (event.event === "progress") yield { type: "ping" }; // a long prompt must not look like a dead stream
  }

  /** Yield the end of the open block. */
  *end(): Generator<LanguageModelV4StreamPart> {
    if (this.#block) yield { type: `${this.#block.kind}-end`, id: this.#block.id };
    this.#block = undefined;
  }

  *#addText({ token, channel = "content" }: TokenEvent): Generator<LanguageModelV4StreamPart> {
    const kind: BlockKind = channel === "reasoning" ? "reasoning" : "text";
    if (this.#block?.kind !== kind) {
      yield* this.end();
      this.#block = { kind, id: String(this.#blocks++) };
      yield { type: `${kind}-start`, id: this.#block.id };
    }
    yield { type: `${kind}-delta`, id: this.#block.id, delta: token };
  }

  *#addCall(event: ToolCallEvent): Generator<LanguageModelV4StreamPart> {
    let call = this.#calls.get(event.index);
    if (!call) {
      yield* this.end();
      call = { id: event.call_id ?? String(event.index), name: event.name ?? "", input: "" };
      this.#calls.set(event.index, call);
      yield { type: "tool-input-start", id: call.id, toolName: call.name };
    }
    if (event.arguments) {
      call.input += event.arguments;
      yield { type: "tool-input-delta", id: call.id, delta: event.arguments };
    }
    if (event.complete === undefined) return;
    yield { type: "tool-input-end", id: call.id };
    // A call that is not whole must not run. Its text follows as content.
    if (event.complete) yield { type: "tool-call", toolCallId: call.id, toolName: call.name, input: call.input };
  }
}
