"""The documentation site, built from the repository's pages."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lmwire
from lmwire_http.app import ENDPOINTS
from lmwire_protocol.commands import COMMANDS
from support.process.lmwire_command import REPOSITORY
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.nightly

CONFIGURATION = REPOSITORY / "tools" / "docs_site" / "mkdocs.yml"
_LOADED = re.compile(r"""<(?:script|img|link rel="(?:stylesheet|icon|preconnect)")[^>]*? (?:src|href)="(\w+:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; a link that leads nowhere, or a page that the navigation lacks, makes it fail."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", CONFIGURATION, "-d", folder],
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_the_pages_load_nothing_from_other_hosts(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert pages
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    assert [page for page, text in texts.items() if _LOADED.search(text)] == []
    # By this attribute the theme's script asks the repository's host for its stars and releases.
    assert [page for page, text in texts.items() if 'data-md-component="source"' in text] == []


FIRST_PROGRAMS = {
    "Python": "with Worker() as",
    "Node": "Worker.start()",
    "Go": "Start(ctx)",
    "Rust": "spawn()",
    "C": "lmwire_start(",
    "Shell": "lmwire chat",
}


def test_the_first_page_has_a_picture_and_the_first_program_in_six_languages(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'<label for="__tabbed_1_\d">(\w+)</label>', page) == [*FIRST_PROGRAMS]
    blocks = re.findall(r"<pre>.*?</pre>", page, flags=re.DOTALL)
    for block, words in zip(blocks, FIRST_PROGRAMS.values(), strict=True):
        assert words in html.unescape(re.sub("<[^>]*>", "", block))
    assert re.search(r'<img alt="The chat page[^>]* src="docs/images/page-light.png"', page)
    assert (site / "docs/images/page-light.png").exists()


def test_links_between_pages_lead_to_pages_and_links_to_code_to_the_repository(site: Path) -> None:
    cli = (site / "cli" / "index.html").read_text(encoding="utf-8")
    assert 'href="../hosts/"' in cli
    assert 'href="https://github.com/lmwire/lmwire/tree/main/tools/tiny_model/README.md"' in cli


def test_the_reference_describes_each_command_of_the_protocol(site: Path) -> None:
    page = (site / "reference" / "protocol" / "index.html").read_text(encoding="utf-8")
    assert {name for name in COMMANDS if f"<code>{name}</code>: " not in page} == set()


def test_the_reference_describes_each_endpoint(site: Path) -> None:
    page = (site / "reference" / "http" / "index.html").read_text(encoding="utf-8")
    titles = set(re.findall(r"<h3[^>]*>([A-Z]+ /[^<]*)<", page))
    assert len(titles) == len({(endpoint.method, endpoint.path) for endpoint in ENDPOINTS})


def test_the_reference_describes_each_public_name_of_the_python_client(site: Path) -> None:
    page = (site / "reference" / "python" / "index.html").read_text(encoding="utf-8")
    assert {name for name in lmwire.__all__ if f'id="lmwire.{name}"' not in page} == set()
