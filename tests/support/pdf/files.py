"""PDF files, written by hand: with text, with none, and hostile ones."""

import io
import zlib
from collections.abc import Sequence

from pypdf import PdfReader, PdfWriter


def pdf(*objects: bytes, count: int = 1) -> bytes:
    """Return a file of numbered objects. The first one is the catalogue."""
    body = b"%PDF-1.7\n"
    places: list[int] = []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    table = b"xref\n0 %d\n0000000000 65535 f \n%b" % (size, table)
    return body + table + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, len(body))


def stream(content: bytes, *, compressed: bool = False) -> bytes:
    content = zlib.compress(content, 9) if compressed else content
    filters = b" /Filter /FlateDecode" if compressed else b""
    return b"<< /Length %d%b >>\nstream\n%b\nendstream" % (len(content), filters, content)


def pages(contents: Sequence[bytes]) -> bytes:
    """Return a file with a page for each content stream."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * index) for index in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%b] /Count %d >>" % (kids, len(contents)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for index, content in enumerate(contents):
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources << /Font << /F 3 0 R >> >> "
            b"/Contents %d 0 R >>" % (5 + 2 * index),
            content,
        ]
    return pdf(*objects)


def text_pages(*texts: str) -> bytes:
    """Return a file with these texts, one a page."""
    return pages([stream(f"BT /F 12 Tf 50 700 Td ({text}) Tj ET".encode()) for text in texts])


def encrypted(content: bytes, user: str, owner: str) -> bytes:
    """Return a file with passwords. One that opens without a password has an empty one for its user."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(content)))
    writer.encrypt(user, owner, algorithm="AES-256")
    output = io.BytesIO()
    writer.write(output)
    return output.getvalue()
