"""An optional field with null is absent, in the body of each endpoint and in every object within it."""

from collections.abc import Iterator
from typing import Any, Final, cast

import pytest
from msgspec import inspect

from lmwire_http.app import ENDPOINTS
from lmwire_http.errors import ApiError
from lmwire_http.http.decoding import convert
from lmwire_http.http.endpoint import Endpoint
from lmwire_http.http.unknown_fields import UnknownFields
from support.http.samples import sample

DEPTH: Final = 5
"""Objects within each other that have a null. Some types contain themselves."""
each_body = pytest.mark.parametrize(
    "endpoint", [each for each in ENDPOINTS if each.request_type], ids=lambda each: each.path
)


def pairs(kind: inspect.Type, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    """Yield values of a type, each without its optional fields and with a null for them."""
    match kind:
        case inspect.Metadata(type=inner):
            yield from pairs(inner, depth)
        case inspect.UnionType(types=types):
            for member in types:
                yield from pairs(member, depth)
        case inspect.ListType():
            yield from (([plain], [nulled]) for plain, nulled in pairs(kind.item_type, depth))
        case inspect.StructType() if depth < DEPTH:
            plain = sample(kind)
            nulled = {**plain, **{field.encode_name: None for field in kind.fields if not field.required}}
            if nulled != plain:
                yield plain, nulled
            for field in kind.fields:
                for inner, inner_nulled in pairs(field.type, depth + 1):
                    yield {**plain, field.encode_name: inner}, {**plain, field.encode_name: inner_nulled}
        case _:
            pass


@each_body
def test_a_null_is_absent_in_every_object_of_a_body(endpoint: Endpoint) -> None:
    for plain, nulled in pairs(inspect.type_info(endpoint.request_type)):
        try:
            expected = convert(plain, endpoint.request_type, UnknownFields({}, strict=True))
        except ApiError:
            continue  # the type wants one of several optional fields
        assert convert(nulled, endpoint.request_type, UnknownFields({}, strict=True)) == expected, nulled


@each_body
def test_an_optional_field_with_null_is_absent(endpoint: Endpoint) -> None:
    kind = cast(inspect.StructType, inspect.type_info(endpoint.request_type))
    required = {field.encode_name: sample(field.type) for field in kind.fields if field.required}
    nulls = {field.encode_name: None for field in kind.fields if not field.required}
    unknown = UnknownFields({}, strict=True)
    assert convert({**required, **nulls}, endpoint.request_type, unknown) == convert(
        required, endpoint.request_type, unknown
    )
    for name in required:
        with pytest.raises(ApiError) as refused:
            convert({**required, name: None}, endpoint.request_type, unknown)
        assert refused.value.param == name
