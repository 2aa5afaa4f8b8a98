"""The body of a rerank request."""

from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta, Struct

from ..errors import invalid_field

MAX_DOCUMENTS: Final = 1000
"""Most documents of a request. Cohere's API recommends the same limit."""


class Document(Struct, kw_only=True, forbid_unknown_fields=True):
    """A document as an object."""

    text: str
    image: Any = None
    """Not supported."""


Documents: TypeAlias = Annotated[list[str | Document], Meta(min_length=1, max_length=MAX_DOCUMENTS)]


class RerankRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Documents to sort by their relevance to a query. Null fields count as absent."""

    model: str = ""
    """May be absent, or `default`, if exactly one model is served."""
    query: Annotated[str, Meta(min_length=1)]
    documents: Documents
    """Texts, or objects with a text."""
    top_n: Annotated[int, Meta(ge=1)] | None = None
    """Return only this number of documents: the most relevant ones."""
    return_documents: bool | None = None
    """Return the text of each document; true by default."""
    instruction: Annotated[str, Meta(min_length=1)] | None = None
    """The task for which documents are relevant. By default the one with which the model was trained."""


def document_texts(body: RerankRequest) -> list[str]:
    """Return the texts of the documents.

    Raises:
        ApiError: A document has an image.
    """
    return [_text(document, f"documents[{index}]") for index, document in enumerate(body.documents)]


def _text(document: str | Document, path: str) -> str:
    if isinstance(document, str):
        return document
    if document.image is not None:
        raise invalid_field(f"{path}.image: documents are texts here; leave it out", f"{path}.image")
    return document.text
