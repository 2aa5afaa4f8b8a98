"""Bodies that are compressed, or begin with a byte order mark, or have another character encoding."""

import codecs
import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from lmwire_http.errors import ApiError
from lmwire_http.http.body import BodyCollector, decompressed, zstd
from support.http.http_server import Server
from support.http.raw_http import CHAT, Answer, RawClient, asked, chat_body, request

MIB = 1024 * 1024
BODY = json.dumps(chat_body("hello")).encode()


@pytest.fixture
def url(mock_server: Server) -> str:
    return mock_server.url


def collected(encoding: str, *parts: bytes, limit: int = 1000) -> bytes:
    body = BodyCollector(limit)
    for part in parts:
        body.add(part)
    return decompressed(body.whole(), encoding, limit)


def refusal(encoding: str, *parts: bytes, limit: int = 1000) -> ApiError:
    with pytest.raises(ApiError) as failure:
        collected(encoding, *parts, limit=limit)
    return failure.value


def said(answer: Answer) -> str:
    assert answer.status == 200, answer
    return answer.json["choices"][0]["message"]["content"]


@pytest.mark.parametrize(
    ("encoding", "compress"),
    [
        ("gzip", gzip.compress),
        ("GZIP", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("zstd", zstd.compress),
    ],
)
def test_a_compressed_body_is_read(url: str, encoding: str, compress: Callable[[bytes], bytes]) -> None:
    compressed = asked(url, "POST", CHAT, compress(BODY), content_encoding=encoding)
    assert said(compressed) == said(asked(url, "POST", CHAT, BODY))


def test_a_compressed_body_is_read_in_parts_of_any_size(url: str) -> None:
    chunks = b"".join([b"1\r\n%c\r\n" % byte for byte in gzip.compress(BODY)]) + b"0\r\n\r\n"
    with RawClient(url) as client:
        client.send(request("POST", CHAT, transfer_encoding="chunked", content_encoding="gzip") + chunks)
        assert client.answer().status == 200


@pytest.mark.parametrize("encoding", ["br", "gzip, zstd", "unknown"])
def test_another_encoding_is_refused_with_those_that_are_read(url: str, encoding: str) -> None:
    answer = asked(url, "POST", CHAT, BODY, content_encoding=encoding)
    assert (answer.status, answer.headers["accept-encoding"]) == (415, "gzip, deflate, zstd")
    assert "gzip, deflate or zstd" in answer.json["error"]["message"]


def test_a_body_that_expands_beyond_the_limit_is_refused(url: str) -> None:
    bomb = zlib.compressobj(wbits=31)
    compressed = b"".join([bomb.compress(b" " * MIB) for _ in range(25)]) + bomb.flush()
    assert len(compressed) < MIB // 10
    answer = asked(url, "POST", CHAT, compressed, content_encoding="gzip")
    assert (answer.status, answer.json["error"]["code"]) == (413, "body_too_long")


def test_a_body_is_decompressed_no_further_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    class Recorder:
        eof, unused_data = False, b""

        def __init__(self, bits: int) -> None:
            self._real: Any = decompressor(bits)

        def decompress(self, part: bytes, max_length: int) -> bytes:
            decoded = self._real.decompress(part, max_length)
            sizes.append(len(decoded))
            return decoded

    decompressor = zlib.decompressobj
    monkeypatch.setattr(zlib, "decompressobj", Recorder)
    assert refusal("gzip", gzip.compress(b" " * MIB), limit=2000).status == 413
    assert sizes == [2001]


def test_zstd_has_the_same_limits() -> None:
    bomb = zstd.compress(b" " * 100 * MIB)
    assert len(bomb) < MIB // 10
    assert refusal("zstd", bomb, limit=2000).status == 413
    assert collected("zstd", zstd.compress(b" " * 1000)) == b" " * 1000
    assert refusal("zstd", zstd.compress(b" " * 1001)).code == "body_too_long"


def test_a_zstd_body_that_needs_much_memory_to_read_is_refused() -> None:
    writer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 27})
    error = refusal("zstd", writer.compress(BODY) + writer.flush())
    assert (error.status, error.code) == (400, "invalid_encoding")
    assert "memory" in error.message


def test_a_limit_holds_for_the_decoded_body_and_for_the_bytes_that_are_sent() -> None:
    assert collected("gzip", gzip.compress(b" " * 1000)) == b" " * 1000
    assert refusal("gzip", gzip.compress(b" " * 1001)).code == "body_too_long"
    empty_block = b"\x00\x00\x00\xff\xff"
    start = zlib.compressobj(wbits=31).flush(zlib.Z_SYNC_FLUSH)
    assert refusal("gzip", start, *[empty_block] * 200).code == "body_too_long"


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ([BODY], "incorrect header"),
        ([gzip.compress(BODY)[:-9]], "ends early"),
        ([gzip.compress(BODY) * 2], "follows its end"),
        ([gzip.compress(BODY), b"more"], "follows its end"),
        ([gzip.compress(BODY)[:-8] + b"\0" * 8], "incorrect data check"),
    ],
)
def test_a_body_without_its_encoding_is_refused(parts: list[bytes], problem: str) -> None:
    error = refusal("gzip", *parts)
    assert (error.status, error.code) == (400, "invalid_encoding")
    assert "the body is not gzip" in error.message
    assert problem in error.message


def test_a_byte_order_mark_is_not_part_of_the_body(url: str) -> None:
    assert said(asked(url, "POST", CHAT, codecs.BOM_UTF8 + BODY)) == said(asked(url, "POST", CHAT, BODY))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_body_in_another_form_of_unicode_is_refused(url: str, encoding: str) -> None:
    answer = asked(url, "POST", CHAT, BODY.decode().encode(encoding))
    assert answer.status == 400
    assert "send it as UTF-8" in answer.json["error"]["message"]


@pytest.mark.parametrize("charset", ["utf-8", "UTF8", '"utf-8"', "us-ascii"])
def test_a_body_may_name_its_character_encoding(url: str, charset: str) -> None:
    said(asked(url, "POST", CHAT, BODY, content_type=f"application/json; charset={charset}"))


@pytest.mark.parametrize("charset", ["utf-16", "iso-8859-1", "x" * 1000])
def test_another_character_encoding_is_refused(url: str, charset: str) -> None:
    answer = asked(url, "POST", CHAT, BODY, content_type=f"application/json; charset={charset}")
    assert (answer.status, answer.json["error"]["code"]) == (415, "unsupported_media_type")
    assert "must be UTF-8" in answer.json["error"]["message"]
