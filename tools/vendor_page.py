"""Copy the libraries of the chat page from their npm packages: `python tools/vendor_page.py`.

The versions are here. After a change of one, run the tests in tests/page.
"""

import json
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).parents[1] / "clients/http/lmwire_http/page/static/vendor"


class Library(NamedTuple):
    """A package and the files that the page needs of it."""

    package: str
    version: str
    files: dict[str, str]
    """Names in the page's folder, by paths in the package."""


LIBRARIES: Final = (
    Library("preact", "11.2.0", {"dist/preact.mjs": "preact.js", "hooks/dist/hooks.mjs": "hooks.js"}),
    Library("htm", "3.1.1", {"dist/htm.mjs": "htm.js"}),
    Library("marked", "18.2.1", {"lib/marked.esm.js": "marked.js"}),
)
_HEADING: Final = "Libraries in the chat page of lmwire, copied from their packages by tools/vendor_page.py.\n"


def main() -> None:
    """Write the files and their licences."""
    notices = [_HEADING]
    with tempfile.TemporaryDirectory() as folder:
        for library in LIBRARIES:
            package = _unpack(library, Path(folder))
            for source, name in library.files.items():
                (FOLDER / name).write_text(_adapt((package / source).read_text()))
            licence = json.loads((package / "package.json").read_text())["license"]
            names = ", ".join(library.files.values())
            title = f"{library.package} {library.version}, {licence}: {names}"
            notices.append(f"---- {title} ----\n\n{_unindent((package / 'LICENSE').read_text())}\n")
    (FOLDER / "LICENSES.txt").write_text("\n".join(notices))


def _unpack(library: Library, folder: Path) -> Path:
    """Return the folder of a package, which npm downloads."""
    command = ["npm", "pack", "--silent", f"{library.package}@{library.version}"]
    archive = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()
    target = folder / library.package
    with tarfile.open(folder / archive) as content:
        content.extractall(target, filter="data")
    return target / "package"


def _adapt(code: str) -> str:
    """Return code that a browser loads without a build step: it finds other files by their path alone."""
    code = re.sub(r"/\*\*\n \* DO NOT EDIT.*?\*/\n\n?", "", code, count=1, flags=re.DOTALL)
    without_map = re.sub(r"\n?//# sourceMappingURL=\S+\s*", "\n", code)
    return without_map.replace('from"preact"', 'from"./preact.js"').rstrip("\n") + "\n"


def _unindent(licence: str) -> str:
    """Return a licence without spaces at the start of lines, which weigh more than the smallest library."""
    return re.sub(r"(?m)^ +", "", licence).strip()


if __name__ == "__main__":
    main()
