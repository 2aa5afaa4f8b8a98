// Calls of MCP tools: which tools a chat offers, what the user has allowed, and the calls that run.
import { getPreference, setPreference } from "../preferences.js";
import { pathTo } from "./tree.js";

const MAX_ROUNDS = 25;
const REFUSED = "The user has refused this call.";

export class ToolRuns {
  /** Called with an answer once each of its calls has an outcome. */
  onSettled = () => {};
  #conversations;
  #tools;
  #running = new Map();

  constructor({ conversations, tools }) {
    this.#conversations = conversations;
    this.#tools = tools;
  }

  /** Return the names of the tools that a chat offers. A new chat begins with those that were chosen last. */
  chosen(conversation = this.#conversations.current) {
    return conversation?.tools ?? getPreference("chosenTools", []);
  }

  choose(names) {
    const { current } = this.#conversations;
    setPreference("chosenTools", names);
    if (current) this.#conversations.update(current.id, { tools: names });
    this.#tools.changed();
  }

  /** Return the chosen tools as a request has them, as far as their servers have them now. */
  async offered(conversation) {
    const names = this.chosen(conversation);
    if (!names.length) return [];
    await this.#tools.refresh();
    const found = names.map((name) => this.#tools.find(name)).filter(Boolean);
    return found.map(({ name, description, parameters }) => ({ type: "function", function: { name, description, parameters } }));
  }

  /** Run the calls of a complete answer that the user has allowed for the chat. The others wait. */
  begin(message) {
    if (this.#rounds(message) > MAX_ROUNDS) return; // it may go on without end: the user decides again
    const { allowed = [] } = this.#conversations.get(message.conversation) ?? {};
    for (const call of message.calls) if (allowed.includes(permission(this.#tools.find(call.name)))) this.#run(message, call);
  }

  /** Run a call. `always` allows the tool for the chat, as long as its definition stays the same. */
  allow(message, call, always) {
    const { allowed = [] } = this.#conversations.get(message.conversation);
    const added = permission(this.#tools.find(call.name));
    if (always && added) {
      this.#conversations.update(message.conversation, { allowed: [...allowed, added] });
      for (const other of message.calls) if (other.name === call.name && !other.outcome) this.#run(message, other);
    } else this.#run(message, call);
  }

  refuse(message, call) {
    this.#settle(message, call, { text: REFUSED, isRefused: true });
  }

  isRunning(call) {
    return this.#running.has(call);
  }

  /** Return the answer of a conversation whose calls run; null if there is none. */
  runningIn(conversation) {
    return [...this.#running.values()].find(({ message }) => message.conversation === conversation)?.message ?? null;
  }

  /** End the running calls of a conversation. */
  stop(conversation) {
    for (const { message, abort } of [...this.#running.values()]) if (message.conversation === conversation) abort.abort();
  }

  /** Return how many answers since the user's last message have called tools. */
  #rounds(message) {
    const path = pathTo(this.#conversations.messagesOf(message.conversation), message.id);
    const start = path.findLastIndex(({ role }) => role === "user");
    return path.slice(start).filter(({ finish }) => finish === "tool_calls").length;
  }

  async #run(message, call) {
    if (this.#running.has(call)) return;
    const abort = new AbortController();
    this.#running.set(call, { message, abort });
    call.problem = "";
    this.#show(message);
    let outcome = null;
    try {
      const args = argumentsOf(call);
      if (!args) outcome = { text: "Error: the arguments are not a JSON object.", isError: true };
      else {
        const { text, is_error: isError } = await this.#tools.call(call.name, args, abort.signal);
        outcome = { text, isError };
      }
    } catch (error) {
      if (error.name === "AbortError") call.problem = "Stopped.";
      else if (error.code === "tool_failed" || error.code === "tool_not_found") outcome = { text: `Error: ${error.message}`, isError: true };
      else call.problem = error.message; // the call has not come to the tool
    }
    this.#running.delete(call);
    if (outcome) this.#settle(message, call, outcome);
    else this.#show(message);
  }

  #settle(message, call, outcome) {
    call.outcome = outcome;
    this.#show(message);
    const isOpen = this.#conversations.get(message.conversation)?.leaf === message.id;
    if (isOpen && message.calls.every((each) => each.outcome)) this.onSettled(message);
  }

  #show(message) {
    this.#conversations.touch(message, { now: true });
    this.#conversations.changed();
  }
}

function permission(tool) {
  return tool && `${tool.name} ${tool.digest}`;
}

function argumentsOf(call) {
  try {
    const value = JSON.parse(call.arguments || "{}");
    return value && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}
