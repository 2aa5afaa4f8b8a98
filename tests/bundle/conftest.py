"""One bundle for all tests of this folder.

What needs a built bundle runs at night: a build takes minutes. For each commit the others run. They alone notice that a
package is missing from the list of those that a bundle holds.
"""

from pathlib import Path

import pytest

from support.bundles.built import built_bundle, linked_copy


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bundle that was moved to a path with spaces and with letters of many scripts."""
    return linked_copy(built_bundle(), tmp_path_factory.mktemp("bundle") / "Größe, 空 白" / "lmwire")


@pytest.fixture
def command(bundle: Path, tmp_path: Path) -> list[str]:
    """Return the start of a command that runs the bundle with nothing in its environment but an empty home."""
    return ["/usr/bin/env", "-i", "PATH=", f"HOME={tmp_path}", str(bundle / "lmwire")]
