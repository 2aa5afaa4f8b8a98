"""Get an answer as JSON of a schema: python_json.py MODEL PROMPT."""

import json
import sys

from lmwire import Worker

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 40}, "age": {"type": "integer", "maximum": 150}},
    "required": ["name", "age"],
    "additionalProperties": False,
}

model, prompt = sys.argv[1:]
with Worker() as worker:
    worker.load(model)
    stream = worker.chat([{"role": "user", "content": prompt}], format={"type": "json_schema", "schema": PERSON})
    answer = stream.answer()
    print(json.loads(answer.text))
