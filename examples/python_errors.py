"""Treat each way in which a request fails: python_errors.py MODEL PROMPT."""

import sys

import lmwire

model, prompt = sys.argv[1:]
with lmwire.Worker() as worker:
    try:
        worker.load(model)
        print(worker.chat(prompt, max_tokens=50, timeout=60).text())
    except lmwire.ModelNotFound:
        print(f"{model} is not on this machine: `lmwire models` lists what is")
    except lmwire.ContextOverflow:
        print("the prompt is too long: shorten it, or pass truncate='middle'")
    except lmwire.OutOfMemory as error:
        print(f"a smaller model is needed: {error}")
    except lmwire.RequestFailed as error:
        print(f"{error.code}, field {error.field}, try again: {error.retryable}: {error}")
    except lmwire.RequestTimeout:
        print("no answer within a minute")
    except lmwire.WorkerLost as error:
        print(f"the worker is gone, this program is not: {error}")
