"""Models come up when they are asked for: once, for all who ask, and whoever leaves meanwhile."""

import asyncio
from pathlib import Path

import pytest

from lmwire_http.errors import ApiError
from lmwire_http.pool import Pool
from support.http.http_pool import MOCK, asked, awaited, figures, pooled, said, until
from support.process.stepped_worker import in_a_row, let_through, started


async def loading(pool: Pool) -> "asyncio.Task[tuple[int, str]]":
    """A client that waits for the model, which is on its way."""
    client = asyncio.create_task(asked(pool, "mock"))
    await until(lambda: pool.statuses() and pool.statuses()[0].loading)
    return client


@awaited
async def test_a_worker_is_started_for_the_first_request_and_kept() -> None:
    async with pooled(worker_command=MOCK) as pool:
        assert pool.statuses() == []
        first, text = await asked(pool, "mock")
        assert text == "to be or not"
        assert (await asked(pool, "mock"))[0] == first
        assert figures(pool, "mock").replicas[0].pid == first


@awaited
async def test_all_who_ask_at_once_share_one_load(tmp_path: Path) -> None:
    async with pooled(worker_command=in_a_row(tmp_path, "gate")) as pool:
        clients = [await loading(pool) for _ in range(5)]
        await until(lambda: figures(pool, "mock").waiting == 5)
        await asyncio.to_thread(let_through, tmp_path, 0)
        assert len(set(await asyncio.gather(*clients))) == 1
        assert started(tmp_path) == 1


@awaited
async def test_a_client_that_disconnects_during_a_load_does_not_end_it_for_others(tmp_path: Path) -> None:
    async with pooled(worker_command=in_a_row(tmp_path, "gate")) as pool:
        first, second = await loading(pool), await loading(pool)
        await until(lambda: figures(pool, "mock").waiting == 2)
        first.cancel()
        await asyncio.wait([first])
        assert figures(pool, "mock").waiting == 1
        await asyncio.to_thread(let_through, tmp_path, 0)
        assert (await second)[1] == "to be or not"
        assert started(tmp_path) == 1


@awaited
async def test_a_load_goes_on_when_all_have_disconnected_so_that_a_retry_finds_it(tmp_path: Path) -> None:
    async with pooled(worker_command=in_a_row(tmp_path, "gate")) as pool:
        client = await loading(pool)
        client.cancel()
        await asyncio.wait([client])
        await asyncio.to_thread(let_through, tmp_path, 0)
        await until(lambda: not figures(pool, "mock").loading)
        assert (await asked(pool, "mock"))[0] == figures(pool, "mock").replicas[0].pid
        assert started(tmp_path) == 1


@awaited
async def test_a_load_that_fails_fails_for_all_and_is_tried_again_for_the_next(tmp_path: Path) -> None:
    command = in_a_row(tmp_path, "gate --fault failed-load", "")
    async with pooled(worker_command=command) as pool:
        clients = [await loading(pool) for _ in range(3)]
        await until(lambda: figures(pool, "mock").waiting == 3)
        await asyncio.to_thread(let_through, tmp_path, 0)
        errors = await asyncio.gather(*clients, return_exceptions=True)
        assert {(error.status, error.code) for error in errors if isinstance(error, ApiError)} == {(500, "bad_model")}
        assert (await asked(pool, "mock"))[1] == "to be or not"


@awaited
async def test_a_model_unknown_to_the_worker_is_not_found_and_leaves_no_worker() -> None:
    async with pooled(worker_command=MOCK) as pool:
        for name in ("gpt-4o", "gpt-4o"):
            with pytest.raises(ApiError) as error:
                await asked(pool, name)
            assert (error.value.status, error.value.code, error.value.param) == (404, "model_not_found", "model")
        assert pool.statuses() == []


@awaited
async def test_more_requests_of_a_model_than_it_may_have_are_asked_to_retry(tmp_path: Path) -> None:
    async with pooled(worker_command=in_a_row(tmp_path, "gate"), max_requests=2) as pool:
        clients = [await loading(pool) for _ in range(2)]
        await until(lambda: figures(pool, "mock").waiting == 2)
        with pytest.raises(ApiError, match="mock has 2 requests") as error:
            await pool.lease("mock", rows=1).__aenter__()
        assert (error.value.status, error.value.retry_after) == (429, 1.0)
        await asyncio.to_thread(let_through, tmp_path, 0)
        await asyncio.gather(*clients)
        assert (await asked(pool, "mock"))[1] == "to be or not"


@awaited
async def test_requests_are_counted_on_their_worker_and_off_it_however_they_end() -> None:
    async with pooled(worker_command=(*MOCK, "--token-ms", "10")) as pool:
        for end in (RuntimeError, asyncio.CancelledError):
            with pytest.raises(end):
                async with pool.lease("mock") as lease, lease.worker.chat([said("on and on")]) as stream:
                    async for _ in stream:
                        assert figures(pool, "mock").replicas[0].in_flight == 1
                        raise end
            assert figures(pool, "mock").replicas[0].in_flight == 0


@awaited
async def test_models_are_loaded_before_the_start_has_ended_if_that_was_asked_for(tmp_path: Path) -> None:
    names = ("mock", "mock:load_steps=2")
    async with pooled(*names, worker_command=in_a_row(tmp_path, ""), preload=True) as pool:
        assert [model.id for model in await pool.served_models() if model.loaded] == [*names]
        assert started(tmp_path) == 2


@awaited
async def test_a_model_that_cannot_be_loaded_at_the_start_is_reported_and_nothing_remains(tmp_path: Path) -> None:
    command = in_a_row(tmp_path, "", "--fault failed-load")
    with pytest.raises(ApiError, match="mock:load_steps=2 cannot be loaded: bad_model: the model is broken"):
        async with pooled("mock", "mock:load_steps=2", worker_command=command, preload=True):
            pass


@awaited
async def test_the_end_does_not_wait_for_a_load_and_fails_those_that_wait(tmp_path: Path) -> None:
    async with pooled(worker_command=in_a_row(tmp_path, "", "gate --fault slow-load:seconds=600")) as pool:
        await asked(pool, "mock")
        client = asyncio.create_task(asked(pool, "mock:load_steps=2"))
        await asyncio.to_thread(let_through, tmp_path, 1)
        await until(lambda: figures(pool, "mock:load_steps=2").loading)
        await pool.close()
        with pytest.raises(ApiError, match="the server is stopping") as error:
            await client
        assert error.value.status == 503
        with pytest.raises(ApiError, match="the server is stopping"):
            await asked(pool, "mock")
    assert [replica.pid for resident in pool.statuses() for replica in resident.replicas] == [None, None]


@awaited
async def test_the_models_are_listed_in_the_order_of_the_settings() -> None:
    async with pooled("one", "mock", "Another", worker_command=MOCK) as pool:
        await asked(pool, "mock")
        models = await pool.served_models()
        assert [(model.id, model.context_len) for model in models] == [
            ("one", None),
            ("mock", 1048576),
            ("Another", None),
        ]
        assert (await pool.served_model("MOCK")).loaded == models[1].loaded


@awaited
async def test_workers_are_asked_how_they_are_and_one_that_hangs_holds_nobody_up(tmp_path: Path) -> None:
    async with pooled(worker_command=in_a_row(tmp_path, "", "--fault no-hello")) as pool:
        await asked(pool, "mock")
        [stats] = (await pool.ask_workers(lambda worker: worker.stats(timeout=60)))["mock"]
        [ping] = (await pool.ask_workers(lambda worker: worker.ping(timeout=60)))["mock"]
        assert stats and stats.requests.done == 2
        assert ping and ping.active == 0
        assert await pool.ask_workers(lambda worker: worker.ping(timeout=0)) == {"mock": [None]}


@awaited
async def test_a_load_and_an_unload_that_begin_together_do_not_wait_for_each_other() -> None:
    async with pooled(worker_command=MOCK) as pool:
        old, _ = await asked(pool, "mock")
        model, lifecycle = pool.models["mock"], pool.lifecycle
        with model.in_use():
            unload = lifecycle.unload(model)
            await lifecycle.ensure_loaded(model)  # begins before the unload has run
            assert unload.done()
            assert figures(pool, "mock").replicas[0].pid not in (old, None)
            await lifecycle.unload(model)
            asyncio.get_running_loop().call_soon(lifecycle.unload, model)  # after the load below, before it has run
            await lifecycle.ensure_loaded(model)
