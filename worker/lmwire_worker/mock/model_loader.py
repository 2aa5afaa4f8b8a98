"""A model loader that loads nothing, as slowly as asked."""

import time
from collections.abc import Callable, Iterable

from lmwire_protocol import Load, RequestError

from ..engine.interface import Report
from ..process.memory_pressure import MemoryPressure
from .refusals import check_load, features
from .replies import Reply, Stage
from .runner import MockRunner, hang
from .scenario import Script

_NAP_SECONDS = 0.01
_SETTINGS = {"load_steps": 1, "step_ms": 0}
_READING = ("read", "warm_up")


class MockModelLoader:
    """Opens mock runners.

    `load {"path": "mock"}` opens one. Settings follow the name, such as `mock:load_steps=1000,step_ms=1`: each step of
    the load and of the runner takes step_ms, and nothing interrupts it. If a rule of the script replies to the load,
    any path is accepted.

    Args:
        script: The replies to requests; other prompts are echoed.
    """

    names = ["mock"]

    def __init__(self, script: Script | None = None) -> None:
        self._script = script or Script()
        self.features = features(self._script.vouched())

    def prepare(self) -> None:
        """Do nothing: the mock imports nothing slow."""

    def read_pressure(self) -> MemoryPressure:
        """Return NORMAL: the mock has no memory to free."""
        return MemoryPressure.NORMAL

    def model_closed(self) -> None:
        """Do nothing: nothing shows which model a mock has."""

    def flush(self) -> None:
        """Do nothing: no thread writes files."""

    def open(self, request: Load, report: Report, release_current_model: Callable[[], None]) -> MockRunner:
        """Report the stages of a load. The present runner is closed when a real worker would start to read.

        Args:
            request: The load.
            report: Takes the progress.
            release_current_model: Closes the present runner.
        """
        rule = self._script.rule_for(request)
        reply = rule.reply if rule else None
        settings = _settings(request.path, any_path=reply is not None)
        check_load(request, rule.match.named if rule else ())
        step_ms = settings["step_ms"]
        if reply is None:
            total = settings["load_steps"]
            steps = (Stage(stage="read", current=n, total=total, unit="steps", delay_ms=step_ms) for n in range(total))
            release_current_model()
            _go_through(steps, report)
        else:
            _play(reply, report, release_current_model)
        return MockRunner(request, step_ms / 1000, self._script)


def _play(reply: Reply, report: Report, release_current_model: Callable[[], None]) -> None:
    if reply.delay_ms:
        _go_through([Stage(stage="resolve", current=0, unit="steps", delay_ms=reply.delay_ms)], report)
    reading = next((n for n, stage in enumerate(reply.progress) if stage.stage in _READING), len(reply.progress))
    _go_through(reply.progress[:reading], report)
    if reply.progress[reading:]:
        release_current_model()
        _go_through(reply.progress[reading:], report)
    if reply.error:
        raise reply.error.to_error()
    if reply.then == "hang":
        hang()
    if reply.then == "wait":
        _go_through([Stage(stage="resolve", current=0, unit="steps", delay_ms=float("inf"))], report)
    if not reply.progress[reading:]:
        release_current_model()


def _go_through(stages: Iterable[Stage], report: Report) -> None:
    """Report each stage repeatedly while it lasts, so that a cancelled load ends."""
    for stage in stages:
        until = time.monotonic() + stage.delay_ms / 1000
        while True:
            report(stage.stage, stage.current, stage.total, stage.unit)
            left = until - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(left, _NAP_SECONDS))


def _settings(path: str, *, any_path: bool) -> dict[str, int]:
    """Parse the settings after the name in a path.

    Raises:
        RequestError: model_not_found.
    """
    settings = dict(_SETTINGS)
    name, _, text = path.partition(":")
    if name != "mock":
        if any_path:
            return settings
        raise RequestError(
            "model_not_found",
            f"{path[:200]!r} is not a model: the mock engine has one model; load `mock`",
            field="path",
        )
    for setting in filter(None, text.split(",")):
        key, _, value = setting.partition("=")
        if key not in settings or not value.isdigit():
            known = ", ".join(f"{key}=N" for key in settings)
            raise RequestError(
                "model_not_found", f"{setting[:200]!r} is not a setting of `mock`; give {known}", field="path"
            )
        settings[key] = int(value)
    return settings
