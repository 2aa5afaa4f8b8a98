"""From the start of the worker to the reply to `hello`."""

from signal import SIGKILL

from lmwire_protocol import Hello
from lmwire_protocol.limits import BANNER_BYTES

from .. import wire
from ..case_failure import CaseFailure, quote
from ..context import CaseContext
from .registry import case, variants

_BANNER = b'Last login: Friday\r\n\r\n\xff\xfe no UTF-8\n[1, 2]\n"text"\n42\nnull\n{"half": \n'
_BANNER_LINE = b"x" * 1023 + b"\n"

_HELLO_TIMEOUT_S = 0.5
"""Seconds that a host waits for `hello` here, unless the machine needs longer to start a worker."""


@case("V-1", "O-2")
def sends_hello_first(context: CaseContext) -> None:
    """Send a `hello` that offers version 1 as the first line."""
    worker = context.spawn()
    hello = worker.read()
    if hello is None or not isinstance(hello.command, Hello):
        raise CaseFailure("a `hello` as the first line", repr(hello and hello.line))
    if not hello.command.protocol[0] <= 1 <= hello.command.protocol[1]:
        raise CaseFailure("a range of versions that contains 1", repr(hello.line))
    worker.write(wire.hello_done(hello.id))
    context.driver.expect_start("started")


@case("H-1")
def gives_the_worker_pipes_and_its_own_process_group(context: CaseContext) -> None:
    """Give the worker pipes, not a terminal, and a process group that is not that of the host or a shell."""
    worker = context.start()
    if worker.terminals:
        raise CaseFailure("three pipes", f"a terminal as descriptor {worker.terminals}")
    if worker.group != worker.pid:
        expected = "the worker leads its own process group"
        raise CaseFailure(expected, f"process {worker.pid} in group {worker.group}")


@case("E-5")
def names_itself_as_the_host(context: CaseContext) -> None:
    """Send as `host_pid`, if at all, the process that has started the worker."""
    worker = context.spawn()
    hello = worker.expect("hello")
    assert isinstance(hello.command, Hello)
    if hello.command.host_pid not in (None, worker.parent):
        raise CaseFailure(f"no `host_pid`, or {worker.parent}", quote(hello.line))
    worker.write(wire.hello_done(hello.id))
    context.driver.expect_start("started")


@case("H-4")
def skips_a_banner(context: CaseContext) -> None:
    """Skip up to 64 KiB of lines that are not JSON objects before the reply to `hello`."""
    worker = context.spawn()
    hello = worker.expect("hello")
    rest = BANNER_BYTES - len(_BANNER)
    worker.write(_BANNER, _BANNER_LINE * (rest // len(_BANNER_LINE)), b"=" * (rest % len(_BANNER_LINE) - 1) + b"\n")
    worker.write(wire.hello_done(hello.id))
    context.driver.expect_start("started")


@case("H-4")
def gives_up_a_banner_over_64_kib(context: CaseContext) -> None:
    """Kill a worker that writes more than 64 KiB of such lines before the reply to `hello`."""
    worker = context.spawn(timeout=_beyond_the_wait(context))
    hello = worker.expect("hello")
    worker.block_sigterm()
    worker.write_last(_BANNER_LINE * (BANNER_BYTES // len(_BANNER_LINE)), _BANNER_LINE)
    worker.write_last(wire.hello_done(hello.id))
    context.driver.expect_start("start_failed")
    worker.expect_killed()


@case("H-2")
def reads_stderr_from_the_start(context: CaseContext) -> None:
    """Start a worker that writes much to stderr before it replies to `hello`."""
    worker = context.spawn()
    worker.flood_stderr()
    worker.write(wire.hello_done(worker.expect("hello").id))
    context.driver.expect_start("started")


@case("H-4", "H-5")
def ignores_blank_lines_before_the_reply_to_hello(context: CaseContext) -> None:
    """Skip blank lines, however many: they are not part of a banner."""
    worker = context.spawn()
    hello = worker.expect("hello")
    worker.write(*[b" \t\r\n" * 1024] * (BANNER_BYTES // 2048), wire.hello_done(hello.id))
    context.driver.expect_start("started")


@case("H-5")
def kills_the_worker_after_an_incomplete_event_before_the_reply_to_hello(context: CaseContext) -> None:
    """Take no malformed event for a banner, and report the failed start without waiting longer."""
    worker = context.spawn(timeout=_beyond_the_wait(context))
    hello = worker.expect("hello")
    worker.block_sigterm()
    worker.write_last({"event": "error", "id": hello.id, "error": "no code"}, wire.hello_done(hello.id))
    context.driver.expect_start("start_failed")
    worker.expect_killed()


@variants({"that-exits": True, "that-lives-on": False}, "V-1", "T-1")
def reports_a_refused_version_at_once(context: CaseContext, exits: bool) -> None:
    """Report a failed start when the worker refuses `hello`, without waiting longer."""
    worker = context.spawn(timeout=_beyond_the_wait(context))
    hello = worker.expect("hello")
    worker.write_last(wire.error(hello.id, "unsupported_protocol", field="protocol", protocols=[7]))
    if exits:
        worker.end(76)
    context.driver.expect_start("start_failed")


@case("H-4")
def kills_a_worker_that_answers_hello_with_any_error(context: CaseContext) -> None:
    """Report a failed start and kill the worker, although the same `hello` can succeed later."""
    worker = context.spawn(timeout=_beyond_the_wait(context))
    hello = worker.expect("hello")
    worker.block_sigterm()
    worker.write_last(wire.error(hello.id, "busy", retryable=True))
    context.driver.expect_start("start_failed")
    worker.expect_killed()


@case("V-1", "H-5")
def rejects_a_version_that_it_did_not_offer(context: CaseContext) -> None:
    """Kill a worker that agrees on a version which the host does not speak, without waiting longer."""
    worker = context.spawn(timeout=_beyond_the_wait(context))
    hello = worker.expect("hello")
    assert isinstance(hello.command, Hello)
    worker.block_sigterm()
    worker.write_last(wire.hello_done(hello.id) | {"protocol": hello.command.protocol[1] + 1})
    context.driver.expect_start("start_failed")
    worker.expect_killed()


@case("H-7")
def gives_up_a_worker_that_never_answers_hello(context: CaseContext) -> None:
    """Wait a bounded time, and leave no process running."""
    with context.before_the_host_gives_up():
        worker = context.spawn(timeout=_HELLO_TIMEOUT_S * context.patience)
        worker.expect("hello")
        worker.block_sigterm()
    context.driver.expect_start("start_failed")
    worker.expect_killed()


@variants({"exit-0": 0, "exit-70": 70, "killed": -SIGKILL}, "H-9", "T-3")
def reports_a_death_before_hello_is_answered(context: CaseContext, status: int) -> None:
    """Report a failed start, whatever the exit code."""
    worker = context.spawn()
    worker.expect("hello")
    worker.end(status)
    context.driver.expect_start("start_failed")


@case("H-6", "H-9")
def discards_half_a_reply_to_hello(context: CaseContext) -> None:
    """Ignore a reply without its newline at the end of stdout."""
    worker = context.spawn()
    worker.write(wire.encode(wire.hello_done(worker.expect("hello").id))[:-1])
    worker.end(0)
    context.driver.expect_start("start_failed")


def _beyond_the_wait(context: CaseContext) -> float:
    """Return seconds for `hello` that are longer than this case waits: a host that only waits them out fails it."""
    return 3 * context.timeout
