"""An MCP server over pipes that behaves, mostly badly, in the way its first argument names. It uses no library.

Each process that it starts, and itself, writes a line to the file of its second argument when it has started.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

KIND = sys.argv[1]
HUGE = 64 * 2**20
TOOLS = [{"name": "go", "inputSchema": {"type": "object"}}]


def send(message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tools() -> list[dict[str, Any]]:
    if KIND == "many tools":
        return [{"name": f"go{number}", "inputSchema": {"type": "object"}} for number in range(10_000)]
    if KIND == "huge schema":
        return [*TOOLS, {"name": "large", "inputSchema": {"type": "object", "title": "x" * 100_000}}]
    if KIND == "strange names":
        names = ["", "a" * 65, "a b", "\x1b[2J", "go"]
        return [*TOOLS, *({"name": name, "inputSchema": {"type": "object"}} for name in names)]
    if KIND == "slow schema":
        schema = {"type": "object", "properties": {"text": {"type": "string", "pattern": "^(a+)+$"}}}
        return [{**TOOLS[0], "outputSchema": schema}]
    if KIND == "adds":
        numbers = {"a": {"type": "integer"}, "b": {"type": "integer"}}
        return [{"name": "add", "inputSchema": {"type": "object", "properties": numbers}}]
    return TOOLS


def result(arguments: dict[str, Any]) -> Any:
    if KIND == "huge result":
        return {"content": [{"type": "text", "text": "é" * 2**20}]}
    if KIND == "wrong result":
        return {"content": "none"}
    if KIND == "slow schema":
        return {"content": [], "structuredContent": {"text": "a" * 64 + "b"}}
    if KIND == "adds":
        return {"content": [{"type": "text", "text": str(arguments["a"] + arguments["b"])}]}
    if KIND == "reads variables":
        return {"content": [{"type": "text", "text": os.environ.get(arguments["name"], "not set")}]}
    return {"content": [{"type": "text", "text": "done"}]}


def answer(message: Any) -> None:
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        info = {"name": "hostile", "version": "1"}
        given = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        send({"id": id, "result": given})
    elif method == "tools/list":
        page = {"tools": tools()}
        send({"id": id, "result": {**page, "nextCursor": "again"} if KIND == "endless pages" else page})
    elif method == "tools/call":
        if KIND == "huge line":
            sys.stdout.write("x" * HUGE)
            sys.stdout.flush()
        elif KIND == "asks back":
            send({"id": 1, "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}})
        elif KIND == "floods":
            with open(sys.argv[2], "a") as started:
                started.write("floods\n")
            while True:
                send({"method": "notifications/tools/list_changed"})
        elif KIND == "ends in its first call" and Path(sys.argv[2]).read_text().count("\n") == 1:
            os._exit(3)
        else:
            send({"id": id, "result": result(message["params"].get("arguments", {}))})
    elif method is None and KIND == "asks back":
        text = "refused" if "error" in message else "answered"
        send({"id": call, "result": {"content": [{"type": "text", "text": text}]}})
    elif id is not None:
        send({"id": id, "error": {"code": -32601, "message": "Method not found"}})


call = 0


def main() -> None:
    global call  # noqa: PLW0603 the id of the call to answer later
    with open(sys.argv[2], "a") as started:
        started.write(f"{os.getpid()}\n")
    if KIND == "does not exit":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen([sys.executable, "-c", f"open({sys.argv[2]!r}, 'a').write('child\\n'); input()"], stdin=-1)
    if KIND == "no JSON":
        print("Welcome!\n{\nnull\n[1]", flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "tools/call":
            call = message["id"]
        answer(message)
    while KIND == "does not exit":
        signal.pause()


main()
