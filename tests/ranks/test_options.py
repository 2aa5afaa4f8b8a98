"""Options that do not fit are refused before anything starts."""

from pathlib import Path

import pytest

from lmwire_worker.__main__ import EXIT_USAGE, read_options

HERE = str(Path(__file__).parent)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--ranks", "1"], "--ranks needs a number from 2 to 64"),
        (["--ranks", "65"], "--ranks needs a number from 2 to 64"),
        (["--ranks", "two"], "--ranks needs a number from 2 to 64"),
        (["--hosts", HERE], f"--hosts {HERE} is not a file"),
        (["--ranks", "2", "--hosts", __file__], "--ranks and --hosts exclude one another"),
        (["--ranks", "2", "--rank-backend", "mpi"], "--rank-backend needs ring, nccl or jaccl"),
        (["--rank-backend", "ring"], "--rank-backend needs --ranks or --hosts"),
        (["--ranks", "2", "--cache-dir", HERE], "a model that is split over ranks has no cache on disk"),
    ],
)
def test_an_option_that_does_not_fit_is_refused_with_the_reason(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        read_options(arguments)
    assert refused.value.code == EXIT_USAGE
    assert problem in capsys.readouterr().err
