"""Models that are not on this machine are fetched where that is allowed, and are then those that are."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmwire_http.errors import ApiError
from lmwire_http.pool.status import log_downloads
from lmwire_protocol.events import Progress, Stage
from random_model import write_model
from support.http.http_pool import Clock, asked, awaited, pooled
from support.models.fake_hub import Hub, only_hub

ID, ALIAS = "mlx-community/SmolLM2-135M-Instruct", "smollm2-135m"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with only_hub(ID, tmp_path, monkeypatch) as hub:
        yield hub


@pytest.mark.slow
@awaited
async def test_what_is_fetched_by_an_alias_is_one_model_under_all_of_its_names(hub: Hub) -> None:
    clock = Clock()
    async with pooled(download=True, clock=clock) as pool:
        fetched, _ = await asked(pool, ALIAS)
        assert hub.requests
        clock.now += 60
        assert ID in [model.id for model in await pool.served_models() if model.loaded]
        for name in (ID, "SmolLM2-135M-instruct", ALIAS):
            assert (await asked(pool, name))[0] == fetched
        assert len([model for model in await pool.served_models() if model.loaded]) == 1


@pytest.mark.slow
@awaited
async def test_a_download_is_logged_while_it_goes_on(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    """The half of a file is sent only after the first line, so the line cannot come after the download."""
    caplog.set_level("INFO", "lmwire_http")
    hub.stall = "model.safetensors"
    async with pooled(download=True) as pool:
        load = asyncio.create_task(asked(pool, ID))
        while not (lines := [line for line in caplog.messages if line.startswith(f"downloading {ID}: 0 of ")]):
            assert not load.done()
            await asyncio.sleep(0.01)
        hub.go_on.set()
        await load
    assert len(lines) == 1


def progress(stage: Stage, current: int, total: int | None) -> Progress:
    return Progress(id="1", stage=stage, current=current, total=total, unit="bytes")


def test_a_download_has_a_line_at_each_tenth_and_the_other_stages_have_none(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "lmwire_http")
    with log_downloads("owner/name") as log:
        for percent in range(101):
            log(progress("download", percent * 10**6, 100 * 10**6))
            log(progress("read", percent, 100))
        log(progress("download", 0, None))
    assert caplog.messages == [f"downloading owner/name: {percent} of 100 MB" for percent in range(0, 101, 10)]


@pytest.mark.slow
@awaited
async def test_nothing_is_downloaded_unless_that_is_allowed(hub: Hub) -> None:
    async with pooled() as pool:
        with pytest.raises(ApiError, match=f"{ID}' is not served here; there are builtin:tiny"):
            await asked(pool, ID)
        assert hub.requests == []


@pytest.mark.slow
@awaited
async def test_what_the_hub_has_not_got_is_not_found(hub: Hub) -> None:
    async with pooled(download=True) as pool:
        with pytest.raises(ApiError, match="the hub does not give it") as error:
            await asked(pool, "owner/none")
        assert (error.value.status, error.value.code, error.value.param) == (404, "model_not_found", "model")


@pytest.mark.slow
@awaited
async def test_a_name_that_a_client_chose_is_looked_for_on_the_hub_and_not_in_a_folder(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker takes a folder of that name for the model otherwise, relative to where the server was started."""
    owner, name = ID.split("/")
    write_model(tmp_path / "here" / owner / name, max_position_embeddings=77)
    monkeypatch.chdir(tmp_path / "here")
    async with pooled(download=True) as pool:
        await asked(pool, ID)
        assert hub.requests
        assert [model.context_len for model in await pool.served_models() if model.loaded] != [77]
