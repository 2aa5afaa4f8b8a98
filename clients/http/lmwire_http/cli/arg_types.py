"""Values as people type them on the command line: `8G`, `10m`, `8080`. Each function raises what argparse shows."""

import re
import shlex
from argparse import ArgumentTypeError
from typing import Final

from ..settings import ANY_ORIGIN

_BYTES: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>[KMGT]?)(?:i?B)?", re.IGNORECASE)
_SECONDS: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>s|m|h|)", re.IGNORECASE)
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s]+|null", re.IGNORECASE)
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_POWERS: Final = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_UNIT_S: Final = {"": 1, "s": 1, "m": 60, "h": 3600}


def size(text: str) -> int:
    """Bytes: `1048576`, `512M`, `8G`. A K is 1,024."""
    if not (found := _BYTES.fullmatch(text.strip())):
        raise ArgumentTypeError(f"{text!r} is no size: write bytes, or a number with K, M, G or T, as 8G")
    bytes = int(float(found["number"]) * 1024 ** _POWERS[found["unit"].upper()])
    if bytes < 1:
        raise ArgumentTypeError(f"{text!r} must be 1 byte or more")
    return bytes


def duration(text: str) -> float:
    """Seconds: `30`, `0.5`, `10m`, `2h`."""
    if not (found := _SECONDS.fullmatch(text.strip())):
        raise ArgumentTypeError(f"{text!r} is no time: write seconds, or a number with s, m or h, as 10m")
    return float(found["number"]) * _UNIT_S[found["unit"].lower()]


def positive_duration(text: str) -> float:
    """Seconds, more than none."""
    if not (seconds := duration(text)):
        raise ArgumentTypeError("must be more than 0 seconds")
    return seconds


def count(text: str) -> int:
    """1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} must be a whole number, 1 or more")
    return int(text)


def port(text: str) -> int:
    """A TCP port; 0 is any that is free."""
    if not text.isdecimal() or int(text) > 65535:
        raise ArgumentTypeError(f"{text!r} must be a whole number from 0 to 65535")
    return int(text)


def model(text: str) -> str:
    """A model's name."""
    if not text.strip():
        raise ArgumentTypeError("is empty: name a folder, a hub id or an alias")
    return text


def origin(text: str) -> str:
    """Where a page is from: `http://localhost:3000`; `null`, which is what files are from; `*` for anywhere."""
    if text != ANY_ORIGIN and not _ORIGIN.fullmatch(text):
        raise ArgumentTypeError(f"{text!r} is no origin: write scheme://host:port, without a path, or *")
    return text


def host_name(text: str) -> str:
    """A name of this machine, as it stands in a URL: `studio.local`."""
    if not _HOST_NAME.fullmatch(text):
        raise ArgumentTypeError(f"{text!r} is no host name: write it as in a URL, without a port, as studio.local")
    return text


def command(text: str) -> tuple[str, ...]:
    """A program and its arguments, quoted as in a shell."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r}: {error}") from None
    if not words:
        raise ArgumentTypeError("is empty: write a command, as 'lmwire worker'")
    return tuple(words)
