"""Multipart forms: parts, files, lists, and what is not a form."""

import pytest
from msgspec import Struct

from lmwire_http.errors import ApiError
from lmwire_http.http.decoding import read_form
from lmwire_http.http.unknown_fields import UnknownFields
from lmwire_http.limits import FORM_HEAD_BYTES, FORM_PARTS

TYPE = {"content-type": 'multipart/form-data; boundary="B"'}


class Form(Struct, kw_only=True, forbid_unknown_fields=True):
    file: bytes = b""
    model: str = ""
    temperature: float | None = None
    names: list[str] = []


def part(name: str, content: bytes, extra: str = "") -> bytes:
    return f'--B\r\nContent-Disposition: form-data; name="{name}"{extra}\r\n\r\n'.encode() + content + b"\r\n"


def read(*parts: bytes, end: bytes = b"--B--\r\n", headers: dict[str, str] = TYPE) -> Form:
    return read_form(headers, b"".join(parts) + end, Form, UnknownFields({}))


def problem(*parts: bytes, end: bytes = b"--B--\r\n", headers: dict[str, str] = TYPE) -> str:
    with pytest.raises(ApiError) as failure:
        read(*parts, end=end, headers=headers)
    assert failure.value.status == 400
    return failure.value.message


def test_a_form_has_texts_numbers_files_and_lists() -> None:
    sound = b"\r\n--\x00\r\n--A\r\n\r\n"
    form = read(
        part("file", sound, '; filename="a.wav"\r\nContent-Type: audio/wav'),
        part("model", "é".encode()),
        part("temperature", b"0.5"),
        part("names[]", b"a"),
        part("names[]", b""),
    )
    assert form == Form(file=sound, model="é", temperature=0.5, names=["a", ""])


def test_what_is_around_the_parts_is_no_part_of_them() -> None:
    spaced = b"--B \t\r\nA: b\r\ncontent-disposition:form-data;name=model\r\n\r\nm\r\n"
    assert read(b"before\r\n", spaced, end=b"--B--\r\nafter").model == "m"
    assert read(end=b"--B--") == Form()


def test_text_in_another_encoding_is_latin_1() -> None:
    assert read(part("model", b"\xe9")).model == "é"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "last boundary is missing"),
        (part("model", b"m"), "last boundary is missing"),
        (b"--B\r\n\r\nm\r\n--B--", "no head"),
        (b"--B\r\ncontent-disposition: form-data\r\n\r\nm\r\n--B--", "no header content-disposition"),
        (b"--B\r\ncontent-disposition: form-data; name=a\r\n--B--", "no head that ends within"),
        (part("model" * FORM_HEAD_BYTES, b"m") + b"--B--", "no head that ends within 4,096 bytes"),
        (b"--Bmodel\r\n\r\nm\r\n--B--", "no head"),
    ],
)
def test_what_is_not_a_form_is_refused(body: bytes, said: str) -> None:
    assert said in problem(body, end=b"")


@pytest.mark.parametrize("type", ["", "multipart/form-data", "multipart/form-data; boundary=", "a;" * FORM_HEAD_BYTES])
def test_a_form_needs_a_boundary(type: str) -> None:
    assert "names no boundary" in problem(part("model", b"m"), headers={"content-type": type})


def test_a_form_has_a_limited_number_of_parts() -> None:
    assert len(read(*[part("names[]", b"")] * FORM_PARTS).names) == FORM_PARTS
    for count in (FORM_PARTS + 1, 300_000):
        assert f"more than {FORM_PARTS} parts" in problem(*[part("names[]", b"")] * count)
