"""MkDocs hooks: add the repository's pages and the generated references to the site."""

import re
import sys
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
SOURCE_URL = "https://github.com/lmwire/lmwire/tree/main/"
ADDRESSES = {
    "README.md": "overview/index.html",
    "protocol/lmwire_conformance/HOSTS.md": "conformance/index.html",
    "worker/MOCK.md": "mock/index.html",
    "protocol/MODELS.md": "protocol/models/index.html",
}
"""Addresses of pages whose place in the repository would make a poor one."""
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)(?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?(?=\))")

sys.path.insert(0, str(HERE))
import first_programs  # noqa: E402
import http_reference  # noqa: E402
import protocol_reference  # noqa: E402
import python_reference  # noqa: E402


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add each page of the navigation, as a file with its path in the repository, so that links between them hold."""
    for path in _repository_pages():
        address = ADDRESSES.get(path) or _address(path)
        files.append(File(path, str(REPOSITORY), config.site_dir, config.use_directory_urls, dest_uri=address))
    for image in sorted((REPOSITORY / "docs" / "images").glob("*.png")):
        files.append(File(str(image.relative_to(REPOSITORY)), str(REPOSITORY), config.site_dir, False))
    files.append(File.generated(config, "reference/protocol.md", content=protocol_reference.make_page(REPOSITORY)))
    files.append(File.generated(config, "reference/python.md", content=python_reference.make_page()))
    files.append(File.generated(config, "reference/http.md", content=http_reference.make_page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to what the site does not have lead to the source, and write the tabs of the first page."""
    here = PurePosixPath(page.file.src_uri).parent

    def lead_to_source(link: re.Match[str]) -> str:
        target = _normalised(here / link["target"])
        if files.get_file_from_path(target) or not (REPOSITORY / target).exists():
            return link[0]  # MkDocs resolves it, or reports it
        return f"{SOURCE_URL}{target}{link['anchor'] or ''}"

    return _LINK.sub(lead_to_source, markdown).replace(first_programs.MARKER, first_programs.make_tabs(REPOSITORY))


def _repository_pages() -> list[str]:
    """Return the pages outside `pages`, of which the navigation may leave none out."""
    folders = [REPOSITORY / "docs", *(REPOSITORY / "clients").iterdir()]
    found = [page for folder in folders for page in folder.glob("*.md")]
    named = ["PROTOCOL.md", "protocol/MODELS.md", "worker/MOCK.md", "protocol/lmwire_conformance/HOSTS.md"]
    found += [REPOSITORY / name for name in named]
    found += [REPOSITORY / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING", "SECURITY", "CHANGELOG")]
    return sorted(page.relative_to(REPOSITORY).as_posix() for page in found)


def _address(path: str) -> str:
    """Return the address of a page: `docs/cli.md` is at cli/, `clients/go/README.md` at clients/go/."""
    parts = PurePosixPath(path.removeprefix("docs/").lower()).with_suffix("").parts
    return "/".join([*(part for part in parts if part != "readme"), "index.html"])


def _normalised(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            if not parts:
                return path.as_posix()
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
