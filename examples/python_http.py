"""Ask a server that `lmwire serve` started, with OpenAI's own client: python_http.py MODEL PROMPT."""

import os
import sys

from openai import OpenAI

model, prompt = sys.argv[1:]
server = OpenAI(base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1"), api_key="any")
answer = server.chat.completions.create(
    model=model, messages=[{"role": "user", "content": prompt}], max_tokens=200, stream=True
)
for chunk in answer:
    print(chunk.choices[0].delta.content or "", end="", flush=True)
print()
