"""From the spawn to the reply to `hello`."""

from signal import SIGKILL

from lmwire_protocol import Hello
from lmwire_protocol.limits import BANNER_BYTES

from .. import wire
from ..case_failure import CaseFailure
from ..context import CaseContext
from .registry import case, variants

_BANNER = b'Last login: Friday\r\n\r\n\xff\xfe no UTF-8\n[1, 2]\n"text"\n42\nnull\n{"half": \n'

_PATIENCE_S = 0.5
"""How long a host waits here, unless the machine needs longer to bring a worker up."""


@case("V-1", "O-2")
def hello_is_the_first_line(context: CaseContext) -> None:
    """The host's first line is a `hello` that offers version 1."""
    worker = context.spawn()
    hello = worker.read()
    if hello is None or not isinstance(hello.command, Hello):
        raise CaseFailure("a `hello` as the first line", repr(hello and hello.line))
    if not hello.command.protocol[0] <= 1 <= hello.command.protocol[1]:
        raise CaseFailure("a range of versions that holds 1", repr(hello.line))
    worker.write(wire.hello_done(hello.id))
    context.driver.expect_start("started")


@case("H-1")
def the_worker_has_pipes_and_a_group_of_its_own(context: CaseContext) -> None:
    """The worker is no part of a terminal, of the host's process group, or of a shell's."""
    worker = context.start()
    if worker.terminals:
        raise CaseFailure("three pipes", f"a terminal as descriptor {worker.terminals}")
    if worker.group != worker.pid:
        raise CaseFailure(
            "the worker leads a process group of its own", f"process {worker.pid} in group {worker.group}"
        )


@case("H-4")
def a_banner_is_skipped(context: CaseContext) -> None:
    """Up to 64 KiB of lines that are no JSON objects may come ahead of the reply to `hello`."""
    worker = context.spawn()
    hello = worker.expect("hello")
    filler = b"x" * 1023 + b"\n"
    rest = BANNER_BYTES - len(_BANNER)
    worker.write(_BANNER, filler * (rest // len(filler)), b"=" * (rest % len(filler) - 1) + b"\n")
    worker.write(wire.hello_done(hello.id))
    context.driver.expect_start("started")


@case("H-2")
def stderr_is_read_from_the_start(context: CaseContext) -> None:
    """A worker that writes much to stderr before it answers still comes up."""
    worker = context.spawn()
    worker.flood_stderr()
    worker.write(wire.hello_done(worker.expect("hello").id))
    context.driver.expect_start("started")


@case("V-1")
def a_refused_version_is_a_failed_start(context: CaseContext) -> None:
    """A worker that speaks no common version is none that the host can use."""
    worker = context.spawn()
    hello = worker.expect("hello")
    worker.write_last(wire.error(hello.id, "unsupported_protocol", field="protocol", protocols=[7]))
    worker.end(76)
    context.driver.expect_start("start_failed")


@case("V-1")
def a_version_that_nobody_offered_is_a_failed_start(context: CaseContext) -> None:
    """The version that `hello` agrees on is one of those that the host speaks."""
    worker = context.spawn()
    hello = worker.expect("hello")
    assert isinstance(hello.command, Hello)
    worker.write_last(wire.hello_done(hello.id) | {"protocol": hello.command.protocol[1] + 1})
    context.driver.expect_start("start_failed")


@case("H-7")
def a_worker_that_never_answers_hello_is_given_up(context: CaseContext) -> None:
    """The host waits a bounded time, and leaves no process behind."""
    with context.before_the_host_gives_up():
        worker = context.spawn(timeout=_PATIENCE_S * context.pace)
        worker.expect("hello")
        worker.block_sigterm()
    context.driver.expect_start("start_failed")
    worker.expect_killed()


@variants({"exit-0": 0, "exit-70": 70, "killed": -SIGKILL}, "H-9", "T-3")
def a_death_before_the_reply_to_hello_is_a_failed_start(context: CaseContext, status: int) -> None:
    """Whatever the exit code."""
    worker = context.spawn()
    worker.expect("hello")
    worker.end(status)
    context.driver.expect_start("start_failed")


@case("H-6", "H-9")
def half_a_reply_to_hello_is_none(context: CaseContext) -> None:
    """A reply without its newline at the end of stdout counts for nothing."""
    worker = context.spawn()
    worker.write(wire.encode(wire.hello_done(worker.expect("hello").id))[:-1])
    worker.end(0)
    context.driver.expect_start("start_failed")
