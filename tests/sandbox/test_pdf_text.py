"""The text of PDFs: what is read, what is refused with which sentence, and what a hostile file can take."""

import pytest

from lmwire.pdf import InvalidPdf, read_pdf
from lmwire_worker.sandbox.pdf_text import MAX_BYTES, MAX_CHARACTERS, MAX_PAGES, read_text
from support.pdf.files import encrypted, pages, pdf, stream, text_pages


def test_the_text_of_all_pages_is_read() -> None:
    assert read_text(text_pages("First page", "Second page")) == {
        "pages": 2,
        "text": "First page\n\nSecond page",
        "is_whole": True,
    }


def test_a_file_that_needs_no_password_to_be_opened_is_read() -> None:
    assert read_text(encrypted(text_pages("Open"), "", "owner"))["text"] == "Open"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (encrypted(text_pages("Secret"), "user", "owner"), "is encrypted"),
        (pages([stream(b"0 0 600 800 re f")]), "its pages are images"),
        (pdf(b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [] /Count 0 >>"), "not a PDF that can be"),
        (b"%PDF-1.7\n", "not a PDF that can be read"),
        (b"GIF89a", "not a PDF that can be read"),
        (b"", "not a PDF that can be read"),
        (bytes(MAX_BYTES + 1), "larger than 24 MiB"),
    ],
    ids=["encrypted", "images", "no pages", "only a header", "a GIF", "empty", "too large"],
)
def test_what_has_no_text_is_refused_with_a_sentence(content: bytes, problem: str) -> None:
    assert problem in read_text(content)["problem"]


def test_pages_and_text_have_limits_and_the_result_says_so() -> None:
    many = read_text(text_pages(*["a"] * (MAX_PAGES + 1)))
    assert (many["pages"], many["is_whole"]) == (MAX_PAGES + 1, False)
    long = read_text(text_pages("word " * (MAX_CHARACTERS // 5 + 100)))
    assert (len(long["text"]), long["is_whole"]) == (MAX_CHARACTERS, False)


@pytest.mark.parametrize(
    "content",
    [
        pdf(b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [2 0 R] /Count 1 >>"),
        pdf(b"<< /Type /Catalog /Pages 2 0 R >>", b"[" * 100_000),
        pages([stream(b"q " * 100_000)]),
    ],
    ids=["pages in a circle", "deep nesting", "many operators"],
)
def test_a_strange_file_ends_with_a_sentence(content: bytes) -> None:
    assert read_text(content)["problem"]


@pytest.mark.slow
def test_a_process_reads_the_text() -> None:
    found = read_pdf(text_pages("In a process"))
    assert (found.pages, found.text, found.is_whole) == (1, "In a process", True)
    with pytest.raises(InvalidPdf, match="not a PDF that can be read"):
        read_pdf(b"GIF89a")


@pytest.mark.slow
def test_a_file_that_expands_a_thousandfold_ends_its_process_or_is_refused() -> None:
    bomb = pages([stream(b" " * (200 * 2**20), compressed=True)])
    assert len(bomb) < 2**20
    with pytest.raises(InvalidPdf):
        read_pdf(bomb)
