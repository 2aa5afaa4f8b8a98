"""One exception for each way in which a worker refuses a request."""

import pytest

import lmwire
from lmwire import (
    ContextOverflow,
    InternalError,
    InvalidModel,
    InvalidRequest,
    ModelNotFound,
    ModelNotLoaded,
    OutOfMemory,
    RequestCancelled,
    RequestFailed,
    UnsupportedRequest,
    WorkerBusy,
    WorkerDraining,
)
from lmwire.errors import request_failed
from lmwire_protocol import CODES, events
from support.process.fake_worker import fake
from support.protocol.both_clients import MakeWorker, on_one_client

CASES = {
    "invalid_request": InvalidRequest,
    "line_too_long": InvalidRequest,
    "unknown_command": UnsupportedRequest,
    "unsupported": UnsupportedRequest,
    "busy": WorkerBusy,
    "draining": WorkerDraining,
    "cancelled": RequestCancelled,
    "not_loaded": ModelNotLoaded,
    "model_not_found": ModelNotFound,
    "bad_model": InvalidModel,
    "context_overflow": ContextOverflow,
    "out_of_memory": OutOfMemory,
    "engine_error": InternalError,
    "internal": InternalError,
}
NEVER_IN_A_REPLY_TO_THIS_CLIENT = {"parse_error", "duplicate_id", "unsupported_protocol"}


def failed(code: str) -> RequestFailed:
    return request_failed(events.Error(id="1", code=code, error="the reason", retryable=False))


@pytest.mark.parametrize(("code", "case"), CASES.items())
def test_a_code_has_an_exception_of_its_own(code: str, case: type[RequestFailed]) -> None:
    failure = failed(code)
    assert type(failure) is case
    assert (failure.code, str(failure)) == (code, f"{code}: the reason")


def test_every_code_of_the_protocol_has_a_case() -> None:
    assert set(CASES) == set(CODES) - NEVER_IN_A_REPLY_TO_THIS_CLIENT


def test_a_code_of_a_later_worker_raises_the_base_class() -> None:
    assert type(failed("from_the_future")) is RequestFailed


def test_all_cases_are_public_and_in_the_overview() -> None:
    assert lmwire.errors.__doc__
    for case in CASES.values():
        assert case.__name__ in lmwire.__all__
        assert f"── {case.__name__} " in lmwire.errors.__doc__


@on_one_client
async def test_a_request_without_a_model_raises_its_case(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker:
        with pytest.raises(ModelNotLoaded):
            await worker.info()
