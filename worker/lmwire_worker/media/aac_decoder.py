"""The process that decodes one AAC file: the file comes on stdin, its rate and samples go to stdout.

Arguments: FFmpeg's name of the format, the number of samples after which to stop, and the limits of processor time in
seconds and of memory in bytes. The rate is 4 bytes, little endian, and each sample a float32 from -1 to 1. The program
imports nothing of lmwire, so that it starts fast.
"""

import contextlib
import io
import resource
import signal
import sys
from typing import Any

CODECS = ("aac", "alac")
SCALES = {"fltp": 1, "s16p": 2**15, "s32p": 2**31}
"""The formats of samples that these codecs produce, and their largest values."""
EXIT_DAMAGED, EXIT_OTHER_CODEC, EXIT_NO_LIBRARY, EXIT_LIMIT = 1, 2, 3, 4


def main() -> int:
    """Decode, and return the exit code."""
    container_format, limit, cpu_seconds, memory_bytes = sys.argv[1], *map(int, sys.argv[2:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the host to handle
    for what, most in (
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):  # the system lacks this limit, or has a lower one
            resource.setrlimit(what, (most, most))
    content = sys.stdin.buffer.read()
    try:
        import av.error
        import numpy  # noqa: F401 : converts the samples
    except (ImportError, OSError):
        return EXIT_NO_LIBRARY
    try:
        with av.open(io.BytesIO(content), format=container_format) as file:
            stream = next(iter(file.streams.audio), None)
            if stream is None or stream.codec_context.name not in CODECS:
                return EXIT_OTHER_CODEC
            stream.codec_context.thread_count = 1
            return _write_samples(av, file, stream, limit)
    except MemoryError:
        return EXIT_LIMIT
    except (av.error.FFmpegError, ValueError, KeyError):
        return EXIT_DAMAGED


def _write_samples(av: Any, file: Any, stream: Any, limit: int) -> int:
    """Write the rate and the samples, up to the limit or the first damage."""
    rate = count = 0
    with contextlib.suppress(av.error.FFmpegError):  # a recording that breaks off is read as far as it goes
        for frame in file.decode(stream):
            if not rate:
                rate = frame.sample_rate
                sys.stdout.buffer.write(rate.to_bytes(4, "little"))
            if frame.sample_rate != rate or count > limit:
                break
            channels = frame.to_ndarray()  # [channels, n]
            scale = SCALES[frame.format.name]
            sys.stdout.buffer.write((channels.mean(axis=0, dtype="float64") / scale).astype("<f4").tobytes())
            count += frame.samples
    sys.stdout.buffer.flush()
    return 0 if rate else EXIT_DAMAGED


if __name__ == "__main__":
    sys.exit(main())
