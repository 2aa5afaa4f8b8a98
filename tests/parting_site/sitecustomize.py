"""Start-up code of ranks in tests: $SILENCE_S sets their patience, and $PARTS how a follower goes its own way."""

import os
import sys
from typing import Any

if silence := os.environ.get("SILENCE_S"):
    from lmwire_worker.ranks import channel

    setattr(channel, "SILENCE_S", float(silence))  # noqa: B010

if os.environ.get("PARTS") == "end" and "lmwire_worker" in sys.orig_argv:
    from itertools import count

    from lmwire_worker.generation.runner import GenerationRunner

    step, steps = GenerationRunner.step, count()

    def end(self: GenerationRunner) -> Any:
        if next(steps) < 50:  # a load has some
            return step(self)
        if "--follow" in sys.orig_argv:
            os._exit(1)
        raise RuntimeError("MLX has noticed that the other rank ended")

    GenerationRunner.step = end

if "--follow" in sys.orig_argv and (way := os.environ.get("PARTS")):
    from lmwire_worker.ranks import group

    if way == "tokens":
        computed = group.checksum
        group.checksum = lambda events, before: computed(events, before) + 1
    if way == "calls":
        group.FollowerRanks.decide = lambda self, choose: choose()
    if way == "failure":

        def fail(self: object, choose: object) -> Any:
            raise RuntimeError("only this rank fails")

        group.FollowerRanks.decide = fail
    if way == "prompts":
        from lmwire_protocol import Chat
        from lmwire_worker.prompts import builder

        built = builder.build_prompt

        def refuse(request: Any, *arguments: Any, **options: Any) -> Any:
            if isinstance(request, Chat):
                raise RuntimeError("this rank renders no prompt")
            return built(request, *arguments, **options)

        builder.build_prompt = refuse
    if way == "imports":
        os._exit(1)
