"""Play a transcript against a worker."""

import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ..report import CaseResult
from ..violation import Violation, kit_defect, printable
from .matching import as_list, matches
from .process import WorkerProcess
from .transcript import Step, Transcript, substitute_n, to_bytes

MODEL = "$MODEL"
GRACE = 1 / 10
"""Share of the maximum wait that a busy machine may add to the seconds that the protocol allows."""


def replay(transcript: Transcript, command: Sequence[str], model: str, seconds: float) -> CaseResult:
    """Play a transcript against a worker, and return the result.

    Args:
        transcript: The transcript.
        command: Starts the worker.
        model: The path that replaces `$MODEL`.
        seconds: Maximum seconds of any wait.

    Raises:
        OSError: The command cannot be started.
    """
    started = time.monotonic()
    player = Replay(transcript, command, model, seconds)
    violation = player.play()
    spent = time.monotonic() - started
    if violation is None:
        return CaseResult(transcript.name, transcript.rules, "pass", seconds=spent)
    rules = tuple(dict.fromkeys((*violation.rules, *player.rules)))
    where = f"{violation.expected} ({transcript.name}.jsonl:{player.line})"
    return CaseResult(transcript.name, rules, "fail", where, violation.seen, spent)


class Replay:
    """One play of a transcript. Each kind of step has a method.

    Args:
        transcript: The transcript.
        command: Starts the worker.
        model: The path that replaces `$MODEL`.
        seconds: Maximum seconds of any wait.

    Attributes:
        line: The line of the file that is played.
        rules: The rules that this line is about.
    """

    def __init__(self, transcript: Transcript, command: Sequence[str], model: str, seconds: float) -> None:
        self._transcript = transcript
        self._command = command
        self._model = model
        self._seconds = seconds
        self.line = 1
        self.rules = transcript.rules
        self._start()

    def play(self) -> Violation | None:
        """Play every step, and the end of stdin after the last. Return the violation, if any.

        Raises:
            OSError: The command cannot be started.
        """
        try:
            self._play()
        except Violation as violation:
            return violation
        except OSError:
            raise
        except Exception as error:
            return kit_defect(error)
        finally:
            self._process.kill()
        return None

    def _play(self) -> None:
        for step in self._transcript.steps:
            self.line = step.number
            self.rules = (step.rule,) if step.rule else self._transcript.rules
            play: Callable[[Step], None] = getattr(self, f"_step_{step.kind}")
            play(step)
        if not self._over:
            self.rules = ("E-2",)
            self._process.close_stdin()
            self._exit(0)

    def _start(self) -> None:
        self._process = WorkerProcess(self._command, self._seconds)
        self._over = False
        self._answers: dict[str, Any] = {}
        self._answers_taken: Counter[str | None] = Counter()
        self._lines_seen: Counter[str] = Counter()  # how far `event` and `line` have looked

    # Actions of the host.

    def _step_send(self, step: Step) -> None:
        commands = as_list(step.what)
        lines = [self._encoded(substitute_n(command, n)) for n in step.times for command in commands]
        self._process.write(b"".join(lines))

    def _step_write(self, step: Step) -> None:
        self._process.write(to_bytes(step.what))

    def _step_close(self, step: Step) -> None:
        {"stdin": self._process.close_stdin, "stdout": self._process.close_stdout}[step.what]()

    def _step_signal(self, step: Step) -> None:
        self._process.signal(signal.Signals[step.what])

    def _step_read(self, step: Step) -> None:
        (self._process.start_reading if step.what else self._process.stop_reading)()

    def _step_wait(self, step: Step) -> None:
        time.sleep(step.what)

    def _step_start(self, step: Step) -> None:
        self._process.kill()
        self._start()

    def _encoded(self, command: dict[str, Any]) -> bytes:
        command = {name: self._model if value == MODEL else value for name, value in command.items()}
        return json.dumps(command, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    # Expectations of the worker.

    def _step_answer(self, step: Step) -> None:
        patterns = [substitute_n(step.what, n) for n in step.times]
        needed = step.options.get("at_least", len(patterns))
        answers = [self._answer(pattern) for pattern in patterns]
        good = [matches(pattern, answer, self._answers) for pattern, answer in zip(patterns, answers, strict=True)]
        if sum(good) < needed:
            bad = good.index(False)
            count = f"{needed} of {len(patterns)} answers like " if len(patterns) > 1 else ""
            raise Violation((), count + _json(patterns[bad]), _json(answers[bad]))
        for pattern, answer in zip(patterns, answers, strict=True):
            if "id" in pattern:
                self._answers[pattern["id"]] = answer

    def _answer(self, pattern: dict[str, Any]) -> dict[str, Any]:
        """Return the next terminal of the pattern's id, or the next error without id, whatever else it contains."""
        id = pattern.get("id")
        place = self._answers_taken[id]
        self._answers_taken[id] += 1
        session = self._process.session

        def find() -> dict[str, Any] | None:
            answers = session.errors_without_id if id is None else session.terminals[id]
            return answers[place] if place < len(answers) else None

        return self._process.wait(find, ("T-1",), _json(pattern))

    def _step_event(self, step: Step) -> None:
        self._next(step.what, "event")

    def _step_line(self, step: Step) -> None:
        line = self._next({}, "line")
        while not matches(step.what, line, self._answers):
            if "after" not in step.options or not matches(step.options["after"], line, self._answers):
                raise Violation((), _json(step.what), _json(line))
            line = self._next({}, "line")

    def _next(self, pattern: dict[str, Any], kind: str) -> dict[str, Any]:
        """Return the next line that matches, and skip those before it.

        Args:
            pattern: The pattern.
            kind: The kind of step. Each kind has its own place in the output.
        """
        objects = self._process.session.objects

        def find() -> dict[str, Any] | None:
            while self._lines_seen[kind] < len(objects):
                self._lines_seen[kind] += 1
                if matches(pattern, objects[self._lines_seen[kind] - 1], self._answers):
                    return objects[self._lines_seen[kind] - 1]
            return None

        return self._process.wait(find, (), _json(pattern))

    def _step_lines(self, step: Step) -> None:
        count = len(self._process.session.objects)
        if count != step.what:
            last = [_json(line) for line in self._process.session.objects[-3:]]
            raise Violation((), f"{step.what} lines in all", f"{count}, the last ones {' '.join(last)}")

    def _step_order(self, step: Step) -> None:
        ends = [line.get("id") for line in self._process.session.objects if line.get("event") in ("done", "error")]
        for n in step.times:
            ids = substitute_n(step.what, n)
            seen = [id for id in ends if id in ids]
            if seen != ids:
                raise Violation((), f"the terminals in the order {_json(ids)}", _json(seen))

    def _step_exit(self, step: Step) -> None:
        self._exit(step.what, step.options.get("within"))

    def _exit(self, wanted: int, within: float | None = None) -> None:
        self._over = True
        code = self._process.wait_exit(None if within is None else within + self._seconds * GRACE)
        if code != wanted:
            raise Violation((), f"exit code {wanted}", f"exit code {code}; {self._process.last_output()}")


def _json(value: Any) -> str:
    return printable(json.dumps(value, ensure_ascii=False))
