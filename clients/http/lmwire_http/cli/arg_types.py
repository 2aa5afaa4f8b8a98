"""Types of command line arguments: sizes (`8G`), times (`10m`), ports and names.

Each function returns the value of a text, and raises the error that argparse shows.
"""

import argparse
import re
import shlex
from argparse import ArgumentTypeError
from typing import Final, Literal, TypeAlias

from ..settings import ANY_ORIGIN, MAX_IMAGE_GROUP

# argparse has no public name for this type.
ArgumentGroup: TypeAlias = "argparse._ArgumentGroup"  # pyright: ignore[reportPrivateUsage]

_BYTES: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>[KMGT]?)(?:i?B)?", re.IGNORECASE)
_SECONDS: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>s|m|h|)", re.IGNORECASE)
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s]+|null", re.IGNORECASE)
_COLLECTOR_URL: Final = re.compile(r"https?://[^/\s@?#]+(?:/[^\s@?#]*)?", re.IGNORECASE)
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_POWERS: Final = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_UNIT_S: Final = {"": 1, "s": 1, "m": 60, "h": 3600}


def size(text: str) -> int:
    """Return a number of bytes: `1048576`, `512M`, `8G`. A K is 1,024."""
    if not (found := _BYTES.fullmatch(text.strip())):
        raise ArgumentTypeError(f"{text!r} is not a size: write bytes, or a number with K, M, G or T, such as 8G")
    bytes = int(float(found["number"]) * 1024 ** _POWERS[found["unit"].upper()])
    if bytes < 1:
        raise ArgumentTypeError(f"{text!r} must be 1 byte or more")
    return bytes


def memory_limit(text: str) -> int | Literal["none"]:
    """Return a number of bytes, or "none"."""
    return "none" if text.strip().lower() == "none" else size(text)


def duration(text: str) -> float:
    """Return a number of seconds: `30`, `0.5`, `10m`, `2h`."""
    if not (found := _SECONDS.fullmatch(text.strip())):
        raise ArgumentTypeError(f"{text!r} is not a time: write seconds, or a number with s, m or h, such as 10m")
    return float(found["number"]) * _UNIT_S[found["unit"].lower()]


def positive_duration(text: str) -> float:
    """Return a number of seconds above 0."""
    if not (seconds := duration(text)):
        raise ArgumentTypeError("must be more than 0 seconds")
    return seconds


def collector_url(text: str) -> str:
    """Return the base URL of an OpenTelemetry collector."""
    if not _COLLECTOR_URL.fullmatch(text):
        raise ArgumentTypeError(
            f"{text!r} is not a collector's address: write one such as http://127.0.0.1:4318; "
            "credentials belong into $OTEL_EXPORTER_OTLP_HEADERS"
        )
    return text


def count(text: str) -> int:
    """Return a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} must be a whole number, 1 or more")
    return int(text)


def image_count(text: str) -> int:
    """Return a number of images in a group."""
    if (number := count(text)) > MAX_IMAGE_GROUP:
        raise ArgumentTypeError(f"{text!r} must be a whole number from 1 to {MAX_IMAGE_GROUP}")
    return number


def port(text: str) -> int:
    """Return a TCP port; 0 means any free one."""
    if not text.isdecimal() or int(text) > 65535:
        raise ArgumentTypeError(f"{text!r} must be a whole number from 0 to 65535")
    return int(text)


def model(text: str) -> str:
    """Return a model's name."""
    if not text.strip():
        raise ArgumentTypeError("is empty: name a folder, a hub id or an alias")
    return text


def origin(text: str) -> str:
    """Return the origin of web pages: `http://localhost:3000`, `null` for local files, or `*` for any."""
    if text != ANY_ORIGIN and not _ORIGIN.fullmatch(text):
        raise ArgumentTypeError(f"{text!r} is not an origin: write scheme://host:port, without a path, or *")
    return text


def host_name(text: str) -> str:
    """Return a host name as in a URL: `studio.local`."""
    if not _HOST_NAME.fullmatch(text):
        raise ArgumentTypeError(f"{text!r} is not a host name: write it without a port, such as studio.local")
    return text


def command(text: str) -> tuple[str, ...]:
    """Return the words of a command, quoted as in a shell."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r}: {error}") from None
    if not words:
        raise ArgumentTypeError("is empty: write a command, such as 'lmwire worker'")
    return tuple(words)
