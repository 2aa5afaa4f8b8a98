"""Resolution of the names that clients use for models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import random_model
from lmwire import LocalModel
from lmwire_http.errors import ApiError
from lmwire_http.pool.model_resolver import ModelResolver
from lmwire_http.settings import Settings
from support.http.http_pool import Clock, awaited, local_model

TINY = local_model("builtin:tiny")
QWEN = local_model("mlx-community/Qwen3-0.6B-4bit", aliases=["qwen3-0.6b"])
ONE_GEMMA = local_model("mlx-community/gemma-3-1b-it-4bit")
OTHER_GEMMA = local_model("google/Gemma-3-1b-it-4bit")
HALF = local_model("somebody/Half", problem="no weights", model_type=None)


class Listing:
    """The models on a machine, and the number of listings."""

    def __init__(self, *models: LocalModel) -> None:
        self.models = list(models)
        self.asked = 0

    def __call__(self, *folders: str) -> Sequence[LocalModel]:
        self.asked += 1
        return [local_model(folder, path=folder) for folder in folders] or self.models


async def names(*models: LocalModel, **settings: Any) -> ModelResolver:
    found = ModelResolver(Settings(**settings), Listing(*models))
    await found.start()
    return found


async def refused(found: ModelResolver, name: str) -> ApiError:
    with pytest.raises(ApiError) as error:
        await found.resolve(name)
    assert (error.value.status, error.value.code, error.value.param) == (404, "model_not_found", "model")
    return error.value


@pytest.mark.parametrize(
    "name",
    [
        "mlx-community/Qwen3-0.6B-4bit",
        "MLX-Community/qwen3-0.6b-4BIT",
        "Qwen3-0.6B-4bit",
        "qwen3-0.6b-4bit",
        "qwen3-0.6b",
    ],
)
@awaited
async def test_a_model_on_this_machine_has_many_names(name: str) -> None:
    found = await (await names(TINY, QWEN, ONE_GEMMA)).resolve(name)
    assert (found.id, found.path) == (QWEN.id, QWEN.path)


@awaited
async def test_the_same_letters_go_before_another_case() -> None:
    upper = local_model(QWEN.id.upper())
    found = await names(QWEN, upper)
    assert (await found.resolve(QWEN.id)).id == QWEN.id
    assert (await found.resolve(upper.id)).id == upper.id


@awaited
async def test_a_short_name_of_two_models_is_refused_with_both() -> None:
    error = await refused(await names(ONE_GEMMA, OTHER_GEMMA), "gemma-3-1b-it-4bit")
    assert ONE_GEMMA.id in error.message
    assert OTHER_GEMMA.id in error.message


@awaited
async def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    error = await refused(await names(TINY, QWEN), "gpt-4o")
    assert error.message == f"the model 'gpt-4o' is not served here; there are {TINY.id}, {QWEN.id}"


@awaited
async def test_an_error_lists_only_some_of_many_names() -> None:
    error = await refused(await names(*(local_model(f"a/{number:03}") for number in range(100))), "gpt-4o")
    assert error.message.endswith("a/018, a/019 and 80 more")


@awaited
async def test_a_folder_without_a_model_is_not_listed_and_the_log_has_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = await names(TINY, HALF)
    assert (await refused(found, "half")).message == unknown_message("half")
    assert "named the model somebody/Half, which cannot run: no weights" in caplog.text
    assert [target.id for target in await found.list_models()] == [TINY.id]


@awaited
async def test_a_whole_model_that_cannot_be_loaded_here_says_why(tmp_path: Path) -> None:
    new = local_model("somebody/New", problem="mlx-lm has no architecture `newer`", kind="text")
    found = await names(TINY, new)
    with pytest.raises(ApiError) as error:
        await found.resolve("new")
    assert (error.value.status, error.value.code, error.value.param) == (501, "unsupported", "model")
    assert error.value.message == "the model 'new' cannot be loaded here: mlx-lm has no architecture `newer`"
    await refused(await names(TINY, new, models=(TINY.id,)), "new")


@awaited
async def test_a_model_with_incomplete_files_is_named_with_what_is_missing() -> None:
    problem = "lacks 1 of its weight files: model-00002-of-00002.safetensors (see /secret/place)"
    half = local_model("somebody/Half", problem=problem, model_type="llama")
    error = await refused(await names(TINY, half), "half")
    assert error.message == f"the model 'half' cannot be loaded here: {problem.replace('/secret/place', '[path]')}"
    assert (await refused(await names(TINY, half, models=(TINY.id,)), "half")).message == unknown_message("half")


@awaited
async def test_a_short_name_of_two_models_that_cannot_run_is_unknown_too() -> None:
    found = await names(TINY, HALF, local_model("other/Half", problem="no weights"))
    assert (await refused(found, "half")).message == unknown_message("half")


@awaited
async def test_a_folder_is_unknown_whatever_is_at_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error reveals nothing about the path: the sentence is the same, and the disk is not read."""
    model = random_model.write_model(tmp_path / "model")
    (tmp_path / "file").touch()
    listing = Listing(TINY, local_model("owner/Cached", path=str(tmp_path / "cached")))
    for settings in (Settings(), Settings(download=True)):
        found = ModelResolver(settings, listing)
        monkeypatch.setattr("os.path.isdir", lambda _: pytest.fail("the disk was looked at"))
        for name in (
            str(model),
            str(tmp_path),
            f"{tmp_path}/file",
            f"{tmp_path}/no",
            f"{tmp_path}/cached",
            "~",
            ".",
            "..",
        ):
            assert (await refused(found, name)).message == unknown_message(name, TINY.id, "owner/Cached")


def unknown_message(name: str, *known: str) -> str:
    return f"the model {name!r} is not served here; there are {', '.join(known or [TINY.id])}"


@awaited
async def test_a_model_that_needs_a_download_is_refused_unless_downloads_are_allowed() -> None:
    await refused(await names(TINY), "owner/model")
    fetching = await names(TINY, HALF, download=True)
    assert (await fetching.resolve("owner/model")).path == "owner/model"
    assert (await fetching.resolve("half")).path == "somebody/Half"
    await refused(fetching, "../model; echo")


@awaited
async def test_a_model_that_came_later_is_found_but_not_looked_for_at_every_request() -> None:
    listing, clock = Listing(TINY), Clock()
    found = ModelResolver(Settings(), listing, clock)
    for _ in range(5):
        await refused(found, "qwen3-0.6b")
    listing.models.append(QWEN)
    assert listing.asked == 1
    clock.now += 11
    assert (await found.resolve("qwen3-0.6b")).id == QWEN.id
    clock.now += 11
    for _ in range(5):
        await found.resolve("qwen3-0.6b")
    assert listing.asked == 2


@pytest.mark.slow
@awaited
async def test_only_the_named_models_are_served() -> None:
    found = await names(TINY, QWEN, ONE_GEMMA, models=("qwen3-0.6b", "owner/Model", "builtin:tiny"))
    assert [target.id for target in await found.list_models()] == [TINY.id, QWEN.id, "owner/Model"]
    for name in ("Qwen3-0.6B-4bit", "qwen3-0.6b", QWEN.id):
        assert (await found.resolve(name)).path == QWEN.path
    assert (await found.resolve("model")).path == "owner/Model"
    there_are = f"there are {TINY.id}, {QWEN.id}, owner/Model"
    assert (await refused(found, ONE_GEMMA.id)).message.endswith(there_are)


@pytest.mark.slow
@awaited
async def test_other_models_are_served_too_if_that_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "My-Model").mkdir()
    cached = local_model("owner/Cached", path=str(tmp_path / "cached"))
    found = await names(TINY, QWEN, cached, HALF, models=(str(tmp_path / "My-Model"), "qwen3-0.6b"), only=False)
    assert [target.id for target in await found.list_models()] == [TINY.id, QWEN.id, "My-Model", "owner/Cached"]
    assert [(await found.resolve(name)).id for name in ("my-model", "cached", TINY.id)] == [
        "My-Model",
        "owner/Cached",
        TINY.id,
    ]
    assert (await found.resolve("claude-sonnet-4-5")).id == "My-Model"
    for name in (cached.path, "half", "gpt-4o"):
        await refused(found, name)
    found.forget()
    assert (await found.resolve("qwen3-0.6b")).id == QWEN.id


@awaited
async def test_the_default_is_the_one_named_model_among_all() -> None:
    found = await names(TINY, QWEN, models=("qwen3-0.6b",), only=False)
    for name in ("", "default", "default_model", "chat_model"):
        assert (await found.resolve(name)).id == QWEN.id


@awaited
async def test_a_named_folder_is_called_by_its_last_part_or_its_path(tmp_path: Path) -> None:
    folder = tmp_path / "My-Model"
    folder.mkdir()
    found = await names(TINY, models=(str(folder),))
    assert (await found.resolve("my-model")).path == str(folder)
    assert (await found.resolve(str(folder))).id == "My-Model"


@awaited
async def test_named_folders_with_the_same_last_part_are_called_by_their_paths(tmp_path: Path) -> None:
    folders = [str(tmp_path / parent / "model") for parent in ("a", "b")]
    for folder in folders:
        Path(folder).mkdir(parents=True)
    found = await names(TINY, models=tuple(folders))
    assert [(await found.resolve(folder)).id for folder in folders] == folders
    await refused(found, "model")


@awaited
async def test_a_foreign_worker_gets_the_names_unchanged() -> None:
    anything = await names(TINY, worker_command=("ssh", "studio", "lmwire", "worker"))
    for name in (QWEN.id, "qwen3-0.6b", "builtin:tiny"):
        assert (await anything.resolve(name)).path == name
    for name in (
        "/Users/ada/models/Qwen",
        "./Qwen",
        "~/Qwen",
        "models/mlx/Qwen",
        "models/..",
        r"C:\Qwen",
        "..",
        "a/../b",
    ):
        await refused(anything, name)
    with pytest.raises(ApiError, match="model is required"):
        await anything.resolve("")
    any_path = await names(TINY, worker_command=("ssh", "studio", "lmwire", "worker"), allow_paths=True)
    assert (await any_path.resolve("/Users/ada/models/Qwen")).path == "/Users/ada/models/Qwen"
    named = await names(TINY, worker_command=("ssh", "studio", "lmwire", "worker"), models=("/Users/ada/models/Qwen",))
    assert (await named.resolve("qwen")).path == "/Users/ada/models/Qwen"
    await refused(named, "builtin:tiny")


@pytest.mark.slow
@awaited
async def test_the_real_listing_knows_the_cache_the_built_in_model_and_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # no model of a package
    snapshot = tmp_path / "hub" / "models--owner--Cached" / "snapshots" / ("a" * 40)
    random_model.write_model(snapshot)
    (refs := tmp_path / "hub" / "models--owner--Cached" / "refs").mkdir()
    (refs / "main").write_text("a" * 40)
    found = ModelResolver(Settings(allow_paths=True))
    assert [target.id for target in await found.list_models()] == ["builtin:tiny", "owner/Cached"]
    assert (await found.resolve("cached")).context_len == 4096
    folder = random_model.write_model(tmp_path / "folder")
    target = await found.resolve(f"{folder}/../folder/")
    assert (target.path, target.context_len) == (str(folder.resolve()), 4096)
    assert (await found.resolve(str(snapshot))).id == "owner/Cached"
    for name in (str(tmp_path), str(tmp_path / "nowhere"), "/odd\0path", "~odd\0user/model", "/" + "long" * 10_000):
        await refused(found, name)


@pytest.mark.slow
@awaited
async def test_a_named_folder_without_a_model_is_reported_at_the_start(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ApiError, match=r"cannot run: .*no config\.json"):
            await ModelResolver(Settings(models=(str(folder),))).start()


# The names of Claude models.


@awaited
async def test_a_claude_model_stands_for_the_first_one_of_the_settings() -> None:
    found = await names(TINY, QWEN, ONE_GEMMA, models=("qwen3-0.6b", "builtin:tiny"))
    for name in ("claude-sonnet-4-5", "claude-haiku-4-5-20251001", "Claude-Opus-9"):
        assert (await found.resolve(name)).id == QWEN.id
    await refused(found, "gpt-4o")
    await refused(found, "claudette")


@awaited
async def test_a_claude_model_stands_for_the_only_one_or_the_recent_one() -> None:
    found = await names(TINY)
    assert (await found.resolve("claude-sonnet-4-5")).id == TINY.id
    found = await names(TINY, QWEN)
    recent = await found.resolve("qwen3-0.6b")
    assert (await found.resolve("claude-sonnet-4-5", recent)).id == QWEN.id
    assert "there are builtin:tiny" in (await refused(found, "claude-sonnet-4-5")).message


@awaited
async def test_a_model_with_the_name_of_a_claude_model_is_itself() -> None:
    found = await names(TINY, local_model("me/claude-mini"), models=("builtin:tiny", "me/claude-mini"))
    assert (await found.resolve("claude-mini")).id == "me/claude-mini"


@awaited
async def test_a_claude_model_is_never_downloaded() -> None:
    await refused(await names(TINY, QWEN, download=True), "claude-sonnet-4-5")
