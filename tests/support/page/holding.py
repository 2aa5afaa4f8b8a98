"""Scripts that let a part of the chat page wait, so that a test decides what comes first."""

HOLD_FILES = """() => {
    const released = new Promise((resolve, reject) => Object.assign(globalThis, { release: resolve, refuse: reject }));
    const { text } = Blob.prototype;
    Blob.prototype.text = async function () { await released; return text.call(this); };
}"""
"""Lets the reading of a text file wait for a call of `release`, or of `refuse` with an error."""

HOLD_TIMERS = """() => {
    const { setTimeout } = globalThis;
    const held = [];
    globalThis.setTimeout = (call) => -held.push(call);
    globalThis.endTimers = () => { globalThis.setTimeout = setTimeout; held.forEach((call) => call()); };
}"""
"""Lets timers that are started from now on wait for a call of `endTimers`."""


def results_held(interface: str, method: str) -> str:
    """Return a script that holds the results of a method of IndexedDB until a call of `release`.

    The promise `reached` is fulfilled when the first result is there.
    """
    return f"""
        const released = new Promise((resolve) => {{ globalThis.release = resolve; }});
        globalThis.reached = new Promise((resolve) => {{
            const {{ {method} }} = {interface}.prototype;
            {interface}.prototype.{method} = function (...options) {{
                const request = {method}.apply(this, options);
                Object.defineProperty(request, "onsuccess", {{
                    set: (handle) => request.addEventListener("success", async () => {{
                        resolve();
                        await released;
                        handle();
                    }}),
                }});
                return request;
            }};
        }});
    """
