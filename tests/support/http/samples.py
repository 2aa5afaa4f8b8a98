"""Short values of the types of requests."""

from typing import Any

from msgspec import inspect


def sample(kind: inspect.Type) -> Any:
    """Return a short value of a type."""
    match kind:
        case inspect.Metadata(type=inner):
            return sample(inner)
        case inspect.UnionType(types=types):
            return sample(types[0])
        case inspect.StructType():
            required = {field.encode_name: sample(field.type) for field in kind.fields if field.required}
            return {**({kind.tag_field: kind.tag} if kind.tag_field else {}), **required}
        case inspect.LiteralType(values=values):
            return values[0]
        case inspect.ListType():
            return [sample(kind.item_type)] * (kind.min_length or 0)
        case inspect.DictType():
            return {}
        case inspect.StrType():
            return "a" * (kind.min_length or 0)
        case inspect.BytesType():
            return ""
        case inspect.BoolType():
            return False
        case inspect.NoneType():
            return None
        case _:
            return 1
