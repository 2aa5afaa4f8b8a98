"""An optional field with null is absent, in the body of each endpoint."""

from typing import cast

import pytest
from msgspec import inspect

from lmwire_http.app import ENDPOINTS
from lmwire_http.errors import ApiError
from lmwire_http.http.decoding import convert
from lmwire_http.http.endpoint import Endpoint
from lmwire_http.http.unknown_fields import UnknownFields
from support.http.samples import sample


@pytest.mark.parametrize("endpoint", [each for each in ENDPOINTS if each.request_type], ids=lambda each: each.path)
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
