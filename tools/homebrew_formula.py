"""Write the Homebrew formula of a wheel: `python tools/homebrew_formula.py dist/lmwire-0.2.0-py3-none-any.whl`.

The formula belongs into a tap. It installs the wheel of the release on GitHub, and pip resolves what the wheel needs on
a Mac. A formula of Homebrew's own collection would list every package instead. https://docs.brew.sh/Taps
"""

import hashlib
import sys
from email.parser import HeaderParser
from pathlib import Path
from string import Template
from zipfile import ZipFile

FORMULA = Template("""\
class Lmwire < Formula
  include Language::Python::Virtualenv

  desc "$summary"
  homepage "https://github.com/lmwire/lmwire"
  url "https://github.com/lmwire/lmwire/releases/download/v$version/$file", using: :nounzip
  sha256 "$sha256"
  license "$license"

  depends_on arch: :arm64
  depends_on macos: :sonoma # the oldest that MLX supports
  depends_on "python@3.13"

  # A longer name hardly fits into some libraries of the wheels, such as that of tokenizers.
  preserve_rpath

  def install
    # A package of another formula may be removed, so lmwire uses none.
    virtualenv_create(libexec, "python3.13", system_site_packages: false)
    # Homebrew's own `pip_install` would leave out the dependencies.
    wheel = buildpath/"$file"
    system "python3.13", "-m", "pip", "--python=#{libexec}/bin/python", "install", "#{wheel}[http]"
    bin.install_symlink libexec/"bin/lmwire"
    man1.install_symlink Dir[libexec/"share/man/man1/*.1"]
    generate_completions_from_executable(bin/"lmwire", "completion")
  end

  service do
    run [opt_bin/"lmwire", "serve"]
    keep_alive successful_exit: false
    process_type :interactive
    stop_timeout 60
    log_path var/"log/lmwire.log"
    error_log_path var/"log/lmwire.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/lmwire --version")
    assert_match(/\\S/, shell_output("#{bin}/lmwire chat builtin:tiny -p hi"))
  end
end
""")


def make_formula(wheel: Path) -> str:
    """Return the formula of a wheel.

    Args:
        wheel: The built wheel, whose metadata and content the formula names.
    """
    with ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = HeaderParser().parsestr(archive.read(name).decode())
    return FORMULA.substitute(
        summary=metadata["Summary"],
        license=metadata["License-Expression"],
        version=metadata["Version"],
        file=wheel.name,
        sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
    )


if __name__ == "__main__":
    print(make_formula(Path(sys.argv[1])), end="")
