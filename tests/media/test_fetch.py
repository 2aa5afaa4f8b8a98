"""Addresses that a request names: only of public hosts, in bounded time and size, whatever a host answers."""

import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmwire_protocol import Media
from lmwire_worker.media import MediaPolicy
from lmwire_worker.media.fetch import fetch, is_public, public_addresses
from lmwire_worker.media.media_error import MediaError
from support.media.image_host import IMAGE, NAME, ImageHost, resolve
from support.media.reading_media import SECONDS, refusal

NOT_PUBLIC = "is not a public host"


@pytest.fixture(scope="module")
def server() -> Iterator[ImageHost]:
    with ImageHost() as host:
        yield host


def get(url: str, **limits: Any) -> bytes:
    return fetch(url, "image", MediaPolicy(urls=True, **limits), resolve)


def problem(url: str, **limits: Any) -> MediaError:
    with pytest.raises(MediaError) as refused:
        get(url, **limits)
    return refused.value


@pytest.mark.parametrize("path", ["/image.png", "/chunks", "/until-the-end", "/a b/ü.png", "/image.png?size=large#top"])
def test_an_image_is_fetched(server: ImageHost, path: str) -> None:
    assert get(server.url(path)) == IMAGE


def test_the_host_is_asked_by_its_name(server: ImageHost) -> None:
    get(server.url("/image.png?a=1"))
    path, headers = server.asked[-1]
    assert path == "/image.png?a=1"
    assert headers["Host"].startswith(f"{NAME}:")
    assert headers["User-Agent"].startswith("lmwire/")


def test_redirects_are_followed(server: ImageHost) -> None:
    assert get(server.url("/to?url=/to?url=/image.png")) == IMAGE
    assert get(server.url(f"/to?url={server.url('/image.png')}")) == IMAGE


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1/",
        "http://localhost:8080/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "//0.0.0.0/",
    ],
)
def test_a_redirect_to_what_is_not_public_is_refused(server: ImageHost, target: str) -> None:
    assert NOT_PUBLIC in str(problem(server.url(f"/to?url={target}")))


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://images.example/a.png", "data:image/png;base64,AAAA"])
def test_a_redirect_to_what_is_not_http_is_refused(server: ImageHost, target: str) -> None:
    assert "is not an http or https address" in str(problem(server.url(f"/to?url={target}")))


@pytest.mark.parametrize(
    ("path", "sentence", "retryable"),
    [
        ("/loop", "is redirected more than 5 times", False),
        ("/404", "is answered with status 404", False),
        ("/503", "is answered with status 503", True),
        ("/304", "is answered with status 304", False),
        ("/page", "is 'text/html' by its own account", False),
        ("/short", "10 more expected", True),
        ("/babble", "could not be fetched", True),
    ],
)
def test_what_is_no_image_is_refused(server: ImageHost, path: str, sentence: str, retryable: bool) -> None:
    refused = problem(server.url(path))
    assert sentence in str(refused)
    assert refused.retryable == retryable


@pytest.mark.parametrize("path", ["/image.png", "/chunks", "/until-the-end"])
def test_what_is_too_large_is_refused(server: ImageHost, path: str) -> None:
    assert "has more than the 20 bytes that are taken" in str(problem(server.url(path), max_bytes=20))


@pytest.mark.parametrize("path", ["/silent", "/slow", "/drip"])
def test_what_takes_too_long_is_given_up(server: ImageHost, path: str) -> None:
    refused = problem(server.url(path), fetch_seconds=0.2)
    assert "took longer than the limit of 0.2 s" in str(refused)
    assert refused.retryable


def test_a_name_that_nobody_resolves_is_given_up(server: ImageHost) -> None:
    answered = threading.Event()

    def never(host: str, port: int) -> list[str]:
        answered.wait(SECONDS)
        return ["127.0.0.1"]

    with pytest.raises(MediaError, match=r"took longer than the limit of 0\.2 s"):
        fetch(server.url("/image.png"), "image", MediaPolicy(urls=True, fetch_seconds=0.2), never)
    answered.set()


def test_a_host_that_is_not_there_may_be_there_later(server: ImageHost) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        refused = problem(f"http://{NAME}:{free.getsockname()[1]}/")
    assert "could not be fetched: " in str(refused)
    assert refused.retryable


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("ftp://images.example/a.png", "is not an http or https address"),
        ("file:///etc/passwd", "is not an http or https address"),
        ("data:image/png;base64,AAAA", "a data URI goes into `data`"),
        ("images.example/a.png", "is not an http or https address"),
        ("", "is not an http or https address"),
        ("http:///a.png", "is an address without a host"),
        ("http://me:secret@images.example/", "holds a name or password"),
        ("http://images.example:port/", "is not an address"),
        ("http://[::1/", "is not an address"),
        (f"http://{'x' * 300}.example/", "not a host's name"),
        ("http://no..name/", "not a host's name"),
    ],
)
def test_what_is_no_address_of_the_web_is_refused(url: str, sentence: str) -> None:
    refused = problem(url)
    assert sentence in str(refused)
    assert not refused.retryable


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "0.0.0.0",
        "2130706433",
        "0x7f.1",
        "[::1]",
        "[::ffff:10.0.0.1]",
        "192.168.1.1",
        "[fe80::1]",
    ],
)
def test_hosts_that_are_not_public_are_refused(host: str) -> None:
    refused = refusal("image", Media(url=f"http://{host}/a.png"), MediaPolicy(urls=True))
    assert NOT_PUBLIC in refused.message
    assert refused.code == "invalid_request"


def test_a_name_that_resolves_to_anything_private_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"public.example": ["93.184.215.14"], "both.example": ["93.184.215.14", "10.0.0.7"]}

    def look_up(host: str, port: int, **_: object) -> list[tuple[Any, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in answers[host]]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert public_addresses("public.example", 80) == ["93.184.215.14"]
    with pytest.raises(MediaError, match=NOT_PUBLIC):
        public_addresses("both.example", 80)


def test_the_address_that_was_checked_is_the_one_that_is_asked(
    server: ImageHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[str] = []
    real = socket.getaddrinfo

    def look_up(host: str, *rest: Any, **more: Any) -> Any:
        looked_up.append(host)
        return real(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert get(server.url("/image.png")) == IMAGE
    assert looked_up == ["127.0.0.1"], "the name is not looked up again, where it might resolve to another address"


def test_the_next_address_of_a_name_is_tried(server: ImageHost) -> None:
    content = fetch(server.url("/image.png"), "image", MediaPolicy(urls=True), lambda *_: ["::1", "127.0.0.1"])
    assert content == IMAGE


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2001:4860:4860::8888", True),
        ("::ffff:8.8.8.8", True),
        ("64:ff9b::808:808", True),
        ("100.64.0.1", False),
        ("172.16.0.1", False),
        ("192.0.2.1", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::", False),
        ("::7f00:1", False),
        ("fd00::1", False),
        ("fe80::1%lo", False),
        ("fec0::1", False),
        ("ff02::1", False),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b:1::1", False),
        ("2002:7f00:1::", False),
        ("2001:db8::1", False),
    ],
)
def test_public_and_private_addresses_are_distinguished(address: str, public: bool) -> None:
    assert is_public(address) == public


def test_a_worker_without_the_option_fetches_nothing() -> None:
    refused = refusal("image", Media(url="http://images.example/a.png"))
    assert refused.code == "unsupported"
    assert "start it with --media-urls, or send the file as data" in refused.message


@pytest.mark.slow
def test_https_is_fetched_from_hosts_that_are_who_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(certificate)]
    subprocess.run([*command, *names, *files], check=True, capture_output=True, timeout=SECONDS)
    both = tmp_path / "both.pem"
    both.write_bytes((tmp_path / "key.pem").read_bytes() + certificate.read_bytes())
    with ImageHost(str(both)) as host:
        assert "could not be fetched: " in str(problem(host.url("/image.png")))
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert get(host.url("/image.png")) == IMAGE
        assert "took longer" in str(problem(host.url("/slow"), fetch_seconds=1.0))
        with pytest.raises(MediaError, match="Hostname mismatch"):
            fetch(host.url("/image.png", "other.example"), "image", MediaPolicy(urls=True), lambda *_: ["127.0.0.1"])
