"""Odd files of a model folder: each is bad_model, with a short reason, before a library reads it."""

import itertools
import json
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from lmwire_protocol import RequestError
from lmwire_worker.loading.model_kind import detect_kind
from lmwire_worker.models import config_check, folder_check
from lmwire_worker.models.config_check import MAX_NAME_CHARACTERS
from lmwire_worker.models.folder_check import MAX_DIMENSIONS, check_safetensors
from lmwire_worker.models.model_files import MAX_PROBLEM_CHARACTERS
from lmwire_worker.models.model_info import read_sampling_defaults
from lmwire_worker.models.settings_check import MAX_EOS_TOKENS, MAX_TEMPLATE_CHARACTERS, MAX_TEMPLATES
from random_model import write_model
from support.media.fuzzing import fuzz_seconds
from support.models.spoiled_folders import spoil
from support.nightly import nightly_but

Header = dict[str, Any]
CONFIG: Final = "config.json"
GENERATION: Final = "generation_config.json"
TOKENIZER: Final = "tokenizer_config.json"
WEIGHTS: Final = "model.safetensors"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("whole") / "model")


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "model")


def refusal(folder: Path) -> str:
    """Return the reason for which a folder is refused. It has a bounded length."""
    with pytest.raises(RequestError) as refused:
        detect_kind(folder, trust_remote_code=False)
    assert refused.value.code in ("bad_model", "unsupported")
    reason = refused.value.message.replace(str(folder), "", 1)
    assert len(reason) < MAX_PROBLEM_CHARACTERS + 200
    return reason


def set_fields(path: Path, **fields: Any) -> None:
    content = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(content | fields))


SETTINGS: Final[list[tuple[str, dict[str, Any], str]]] = [
    (CONFIG, {"model_type": "x" * 100_000}, "has the model_type 'xxx"),
    (CONFIG, {"model_type": "../../other"}, "has the model_type '../../other'"),
    (CONFIG, {"model_type": "a\x1b[2J\nb"}, r"has the model_type 'a\x1b[2J\nb'"),
    (CONFIG, {"model_type": ["qwen3"]}, "has the model_type ['qwen3']"),
    (CONFIG, {"model_type": None}, "names no model_type"),
    (CONFIG, {"model_file": "x" * 100_000}, "brings its own code"),
    (CONFIG, {"n" * (MAX_NAME_CHARACTERS + 1): 1}, "has a field of 501 characters"),
    (CONFIG, {"decoder_layers": [float("nan"), 10**9]}, "claims 1000000000 layers"),
    (CONFIG, {"eos_token_id": -1}, "has -1 in eos_token_id"),
    (GENERATION, {"eos_token_id": [1, "2"]}, "has '2' in eos_token_id"),
    (GENERATION, {"eos_token_id": [1, 2.0]}, "has 2.0 in eos_token_id"),
    (GENERATION, {"eos_token_id": [1, None]}, "has None in eos_token_id"),
    (GENERATION, {"eos_token_id": [[1]]}, "has [1] in eos_token_id"),
    (GENERATION, {"eos_token_id": {"a": 1}}, "has {'a': 1} in eos_token_id"),
    (GENERATION, {"eos_token_id": True}, "has True in eos_token_id"),
    (GENERATION, {"eos_token_id": 2**40}, "in eos_token_id"),
    (GENERATION, {"eos_token_id": "x" * 100_000}, "has 'xxx"),
    (GENERATION, {"eos_token_id": [7] * (MAX_EOS_TOKENS + 1)}, "has 1,001 tokens in eos_token_id"),
    (TOKENIZER, {"chat_template": 5}, "has 5 as a chat template"),
    (TOKENIZER, {"chat_template": ["{{ a }}"]}, "has '{{ a }}' in chat_template"),
    (TOKENIZER, {"chat_template": [{"name": "a"}]}, "has None as a chat template"),
    (TOKENIZER, {"chat_template": [{"name": ["a"], "template": "a"}]}, "in chat_template, which must be"),
    (TOKENIZER, {"chat_template": [{"name": "a", "template": "a"}] * 2}, "has two chat templates of one name"),
    (TOKENIZER, {"chat_template": {"default": 5}}, "has 5 as a chat template"),
    (TOKENIZER, {"chat_template": "x" * (MAX_TEMPLATE_CHARACTERS + 1)}, "has a chat template of 1,000,001 characters"),
    (
        TOKENIZER,
        {"chat_template": [{"name": str(number), "template": ""} for number in range(MAX_TEMPLATES + 1)]},
        "has 101 chat templates",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("file", "fields", "reason"), SETTINGS, ids=range(len(SETTINGS)))
def test_an_odd_setting_is_refused_with_a_short_reason(
    folder: Path, file: str, fields: dict[str, Any], reason: str
) -> None:
    set_fields(folder / file, **fields)
    assert reason in refusal(folder)


def test_a_config_has_a_limit_of_fields(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_check, "MAX_FIELDS", 99)
    set_fields(folder / CONFIG, many={str(number): {} for number in range(99)})
    assert "has more than 99 fields" in refusal(folder)


def test_a_generation_config_is_an_object(folder: Path) -> None:
    (folder / GENERATION).write_text("[1]")
    assert "is not a JSON object" in refusal(folder)


def test_a_template_in_a_file_of_its_own_has_the_same_limit(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("x" * (MAX_TEMPLATE_CHARACTERS + 1))
    assert "is longer than 1,000,000 bytes" in refusal(folder)


@pytest.mark.parametrize("eos", [7, [7], [7, 10**6], None, []])
def test_settings_of_real_models_are_accepted(folder: Path, eos: Any) -> None:
    set_fields(folder / GENERATION, eos_token_id=eos, temperature="x" * 1000)
    templates = [{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}]
    set_fields(folder / TOKENIZER, chat_template=templates)
    assert detect_kind(folder, trust_remote_code=False)[0] == "text"


def test_a_sampling_default_that_nests_deeper_than_python_writes_is_ignored(folder: Path) -> None:
    (folder / GENERATION).write_text('{"temperature":' + '{"a":' * 900 + "1" + "}" * 901)
    assert read_sampling_defaults(folder) is None


# Headers of safetensors files.


def change_header(path: Path, change: Callable[[Header], Any]) -> None:
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = change(json.loads(data[8:end]))
    encoded = (header if isinstance(header, str) else json.dumps(header)).encode()
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + data[end:])


def of_one_shape(header: Header) -> tuple[Header, Header]:
    """Return two tensors of the same shape, the first one before the other."""
    tensors = sorted(
        (tensor for name, tensor in header.items() if name != "__metadata__"), key=lambda one: one["data_offsets"]
    )
    return next((one, other) for one, other in itertools.combinations(tensors, 2) if one["shape"] == other["shape"])


def share_bytes(header: Header) -> Header:
    one, other = of_one_shape(header)
    one["data_offsets"] = other["data_offsets"]
    return header


def overlap(header: Header) -> Header:
    _, other = of_one_shape(header)
    other["data_offsets"] = [offset - 4 for offset in other["data_offsets"]]
    return header


def twice(header: Header) -> str:
    name, tensor = header.popitem()
    return f"{json.dumps(header)[:-1]}, {json.dumps(name)}: 5, {json.dumps(name)}: {json.dumps(tensor)}}}"


def added(
    dtype: Any = "F32", shape: Any = (2,), data_offsets: Any = (0, 8), name: str = "z"
) -> Callable[[Header], Header]:
    tensor = {"dtype": dtype, "shape": shape, "data_offsets": data_offsets}
    return lambda header: {**header, name: tensor}


HEADERS: Final[list[tuple[Callable[[Header], Any], str]]] = [
    (share_bytes, "leaves a gap of"),
    (overlap, "overlaps the tensor before it"),
    (added(), "overlaps the tensor before it"),
    (twice, "twice"),
    (added(shape=[2**31 - 1] * 200_000), "'z' has 200000 dimensions"),
    (added(shape=[1] * (MAX_DIMENSIONS + 1)), "has 17 dimensions"),
    (added(shape=[2**31 - 1] * 16), "bytes for shape"),
    (added(shape=[-2]), "-2 is not a size"),
    (added(shape=[2.0]), "2.0 is not a size"),
    (added(shape=[2**31]), "'z' has the shape [2147483648]"),
    (added(data_offsets=[8, 0]), "the offsets 8 to 0"),
    (added(data_offsets=[0, 2**80]), "is not a size"),
    (added(data_offsets=[0]), "has a damaged header"),
    (added(data_offsets=[10**12, 10**12 + 8]), "leaves a gap"),
    (added(dtype="F64"), "'z' has 8 bytes for shape [2]"),
    (added(dtype=["F32"]), "has a damaged header"),
    (added(shape=[3], name="z" * 100_000), "'zzz"),
    (lambda header: [header], "has a damaged header"),
    (lambda header: json.dumps(header)[:-1], "has a damaged header"),
    (lambda header: '{"a":' * 100_000, "has a damaged header"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "reason"), HEADERS, ids=range(len(HEADERS)))
def test_a_header_that_lies_is_refused(folder: Path, change: Callable[[Header], Any], reason: str) -> None:
    change_header(folder / WEIGHTS, change)
    assert reason in refusal(folder)


def test_two_files_of_a_set_do_not_have_the_same_tensor(folder: Path) -> None:
    first = folder / "model-00001-of-00002.safetensors"
    (folder / WEIGHTS).rename(first)
    shutil.copy(first, folder / "model-00002-of-00002.safetensors")
    assert "which another file of the same set has too" in refusal(folder)


def test_a_model_has_a_limit_of_tensors(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_check, "MAX_TENSORS", 3)
    assert "has more than 3 tensors" in refusal(folder)


@pytest.mark.parametrize("name", ["../other.safetensors", "x" * 100_000 + ".safetensors", "\ud800.safetensors", 5])
def test_an_index_names_files_of_the_folder(folder: Path, name: Any) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
    assert "weight files" in refusal(folder)


# Random damage.


@pytest.mark.parametrize("file", nightly_but({CONFIG, WEIGHTS}, [CONFIG, GENERATION, TOKENIZER, WEIGHTS]))
def test_a_spoilt_file_is_refused_or_makes_sense(whole: Path, tmp_path: Path, file: str) -> None:
    folder, end = tmp_path / "model", time.monotonic() + fuzz_seconds()
    set_fields(whole / GENERATION, eos_token_id=[7, 8], temperature=0.5)
    for seed in itertools.count():
        shutil.copytree(whole, folder)
        draw = random.Random(f"{file} {seed}")
        changes = [spoil(folder, draw, often=file) for _ in range(1 + seed % 3)]
        print(file, seed, *changes, sep="\n", flush=True)  # a test that fails shows it
        try:
            detect_kind(folder, trust_remote_code=False)
            read_sampling_defaults(folder)
        except RequestError as error:
            assert error.code in ("bad_model", "unsupported")
            assert len(error.message) < len(str(folder)) + MAX_PROBLEM_CHARACTERS + 200
        else:
            check_places(folder / WEIGHTS)
        shutil.rmtree(folder)
        if time.monotonic() > end:
            break


def check_places(path: Path) -> None:
    """Check that the tensors of an accepted file share no bytes, and that none is outside of it."""
    tensors, data = check_safetensors(path), path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    places = sorted(header[name]["data_offsets"] for name in tensors)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(places))
    assert places[-1][1] <= len(data)
