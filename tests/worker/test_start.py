import subprocess
import sys

import pytest

PREPARING = """
import gc
import sys
from lmwire_worker import __main__
from lmwire_worker.loading.model_loader import MlxModelLoader

prepare = MlxModelLoader.prepare

def prepare_and_report(self):
    prepare(self)
    print(gc.isenabled(), file=sys.stderr, flush=True)

MlxModelLoader.prepare = prepare_and_report
__main__.main([])
"""


@pytest.mark.slow
def test_the_engine_is_imported_without_collections_of_garbage() -> None:
    command = [sys.executable, "-P", "-c", PREPARING]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=subprocess.DEVNULL, stderr=pipe) as worker:
        assert worker.stdin and worker.stderr
        worker.stdin.write(b'{"id":"1","cmd":"hello"}\n')
        worker.stdin.flush()
        assert worker.stderr.readline() == b"False\n"
        worker.stdin.close()
    assert worker.returncode == 0
