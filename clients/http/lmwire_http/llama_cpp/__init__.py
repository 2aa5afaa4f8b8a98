"""Endpoints of llama.cpp's server that editors use. See https://github.com/ggml-org/llama.cpp/tree/master/tools/server."""

from collections.abc import Sequence
from typing import Final

from ..http.endpoint import Endpoint
from .infill import fill_in
from .props import get_props

ENDPOINTS: Final[Sequence[Endpoint]] = (fill_in, get_props)
