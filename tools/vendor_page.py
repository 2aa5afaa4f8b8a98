"""Copy the libraries of the chat page from their npm packages: `python tools/vendor_page.py`.

The versions and the digests of the packages are here. Those of the copied files are in vendored.sha256, in sha256sum's
format. `python tools/vendor_page.py --check` compares them, without a download.

After a change of a version, read what differs, and run the tests in tests/page.
"""

import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

_ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = _ROOT / "clients/http/lmwire_http/page/static/vendor"
MANIFEST: Final = Path(__file__).with_name("vendored.sha256")
"""Digests of all files in the folder, one a line, as sha256sum writes them."""


class Library(NamedTuple):
    """A package and the files that the page needs of it."""

    package: str
    version: str
    sha256: str
    """Digest of the package as npm downloads it."""
    files: dict[str, str]
    """Names in the page's folder, by paths in the package."""


LIBRARIES: Final = (
    Library(
        "preact",
        "11.2.0",
        "3c4456766bd32b6b534d52bf4e9c2a29b33e7eedf6e96ed479300ba1a7888ebf",
        {"dist/preact.mjs": "preact.js", "hooks/dist/hooks.mjs": "hooks.js"},
    ),
    Library(
        "htm",
        "3.1.1",
        "2425b9bee11409177bcabc7f32e319926fc6690c1701c0b257c88bdff2d5ba90",
        {"dist/htm.mjs": "htm.js"},
    ),
    Library(
        "marked",
        "18.2.1",
        "d66c5213fc203466186060105b01f51896764ba64b3797d2620d02e28e34b8ca",
        {"lib/marked.esm.js": "marked.js"},
    ),
    Library(
        "@highlightjs/cdn-assets",
        "11.12.0",
        "b8a006d30f45afe783072569f3d69c5b60c0e7b9ca28cd474e12f2584e2a3bd9",
        {"es/highlight.min.js": "highlight.js"},
    ),
    Library(
        "temml",
        "0.13.5",
        "bca5b76dd26d1d6c81f8d817f6cc8bf0f0a1a7787512e281d5c22b986f8ae582",
        {"dist/temml.min.js": "temml.js", "dist/Temml-Local.css": "temml.css", "dist/Temml.woff2": "Temml.woff2"},
    ),
)
_HEADING: Final = "Libraries in the chat page of lmwire, copied from their packages by tools/vendor_page.py.\n"


def main() -> None:
    """Write the files, their licences and the digests, or compare the files with the digests."""
    if "--check" in sys.argv[1:]:
        sys.exit("\n".join(f"{path}: not as tools/vendor_page.py wrote it" for path in changed_files()) or None)
    notices = [_HEADING]
    with tempfile.TemporaryDirectory() as folder:
        for library in LIBRARIES:
            package = unpack(library, Path(folder))
            for source, name in library.files.items():
                content = (package / source).read_bytes()
                (FOLDER / name).write_bytes(_adapt(content.decode()).encode() if name.endswith(".js") else content)
            licence = json.loads((package / "package.json").read_text())["license"]
            names = ", ".join(library.files.values())
            title = f"{library.package} {library.version}, {licence}: {names}"
            notices.append(f"---- {title} ----\n\n{_unindent((package / 'LICENSE').read_text())}\n")
    (FOLDER / "LICENSES.txt").write_text("\n".join(notices))
    MANIFEST.write_text("".join(f"{digest}  {path}\n" for path, digest in _digests().items()))


def changed_files() -> list[str]:
    """Return the paths of vendored files that are not as the manifest says, or that only one of both has."""
    listed = {path: digest for digest, path in map(str.split, MANIFEST.read_text().splitlines())}
    return sorted({path for path, _ in listed.items() ^ _digests().items()})


def _digests() -> dict[str, str]:
    files = sorted(file for file in FOLDER.rglob("*") if file.is_file())
    return {str(file.relative_to(_ROOT)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def unpack(library: Library, folder: Path) -> Path:
    """Return the folder of a package, which npm downloads. Exit if it is not the one whose digest is known."""
    command = ["npm", "pack", "--silent", f"{library.package}@{library.version}"]
    archive = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()
    digest = hashlib.sha256((folder / archive).read_bytes()).hexdigest()
    if digest != library.sha256:
        sys.exit(f"{archive} has the digest {digest}, and not {library.sha256}: find out why before you use it")
    target = folder / library.package
    with tarfile.open(folder / archive) as content:
        content.extractall(target, filter="data")
    return target / "package"


def _adapt(code: str) -> str:
    """Return code that a browser loads without a build step: it finds other files by their path alone."""
    code = re.sub(r"/\*\*\n \* DO NOT EDIT.*?\*/\n\n?", "", code, count=1, flags=re.DOTALL)
    without_map = re.sub(r"\n?//# sourceMappingURL=\S+\s*", "\n", code)
    script = re.match(r"var (\w+)=", code)
    if script and not re.search(r"\bexport ", code):  # Temml has a minified script, and a module that is not
        without_map += f"\nexport default {script[1]};"
    return without_map.replace('from"preact"', 'from"./preact.js"').rstrip("\n") + "\n"


def _unindent(licence: str) -> str:
    """Return a licence without spaces at the start of lines, which weigh more than the smallest library."""
    return re.sub(r"(?m)^ +", "", licence).strip()


if __name__ == "__main__":
    main()
