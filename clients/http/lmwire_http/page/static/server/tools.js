// The tools of the server's MCP servers. The page asks the server alone, which has the connections.
import { Observable } from "../observable.js";
import { fetchJson } from "./client.js";

export class Tools extends Observable {
  /** The MCP servers, as { name, state, problem, tools, left_out }. */
  servers = [];

  /** Return a tool by its name among all servers, with its server's name. Null if there is none now. */
  find(name) {
    for (const { name: server, tools } of this.servers) {
      const found = tools.find((tool) => tool.name === name);
      if (found) return { ...found, server };
    }
    return null;
  }

  async refresh() {
    const { servers } = await fetchJson("v1/mcp/tools").catch(() => this); // what fails is shown elsewhere
    this.servers = servers;
    this.changed();
  }

  /** Return the result of a tool as { text, is_error }. Throws ServerError, and AbortError by the signal. */
  call(name, args, signal) {
    return fetchJson("v1/mcp/call", { body: { name, arguments: args }, signal });
  }
}
