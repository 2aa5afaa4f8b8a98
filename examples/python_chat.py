"""Chat with a model that runs in a child process: python_chat.py MODEL PROMPT."""

import sys

from lmwire import Worker

model, prompt = sys.argv[1:]
with Worker() as worker:
    worker.load(model)
    with worker.chat([{"role": "user", "content": prompt}], max_tokens=200) as stream:
        for delta in stream:
            print(delta.text, end="", flush=True)
    print(f"\n({stream.result.finish_reason}, {stream.result.usage.completion_tokens} tokens)")
