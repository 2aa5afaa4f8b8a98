"""The program of a bundle: the `lmwire` command, and the Python that the command runs its helpers with.

lmwire starts helper processes with `sys.executable -P -m MODULE` or `sys.executable -P FILE`. In a bundle,
`sys.executable` is this program, so it accepts the same arguments, and also those of `multiprocessing`.
PyInstaller includes the modules that a program imports, so this one imports lmwire by name: lmwire lies in files.
"""

import os
import runpy
import sys
from collections.abc import MutableMapping
from importlib import import_module
from typing import Final

_CERTIFICATES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, Red Hat
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # macOS, Alpine
)
"""Files of the certificates that a system trusts. OpenSSL knows only the place on the machine that built it."""


def main() -> int:
    """Run the command line in `sys.argv`, and return its exit code."""
    setattr(sys, "frozen", "lmwire")  # noqa: B010 : tells lmwire that this program runs its modules
    prepare_environment(os.environ)
    if sys.argv[1:3] == ["-P", "-m"]:
        module = sys.argv[3]
        del sys.argv[1:4]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return 0
    if sys.argv[1:2] == ["-P"]:
        del sys.argv[:2]
        runpy.run_path(sys.argv[0], run_name="__main__")
        return 0
    if sys.argv[1:2] == ["--multiprocessing-fork"] or sys.argv[-2:-1] == ["-c"]:
        import_module("multiprocessing").freeze_support()
    return import_module("lmwire.cli").main()


def prepare_environment(environment: MutableMapping[str, str], certificates: tuple[str, ...] = _CERTIFICATES) -> None:
    """Take PyInstaller's variables out of an environment, and name the system's certificates in it.

    Other programs that lmwire starts, such as ssh, must not load the bundle's libraries.

    Args:
        environment: The environment variables, which change.
        certificates: Files to look for. The first that exists is used, unless a variable names one.
    """
    original = environment.pop("LD_LIBRARY_PATH_ORIG", None)
    for name in [name for name in environment if name == "LD_LIBRARY_PATH" or name.startswith("_PYI_")]:
        del environment[name]
    if original is not None:
        environment["LD_LIBRARY_PATH"] = original
    if not {"SSL_CERT_FILE", "SSL_CERT_DIR"} & environment.keys():
        found = next(filter(os.path.isfile, certificates), None)
        environment.update({"SSL_CERT_FILE": found} if found else {})


if __name__ == "__main__":
    sys.exit(main())
