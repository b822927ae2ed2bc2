# SPDX-License-Identifier: GPL-2.0-or-later
"""./bootstrap on machines that are not as it hopes for: what it asks of apt, and what it says. With an apt that installs nothing."""

import os
import shutil
from pathlib import Path

import pytest

from tests.harness import ROOT, Run, run

# Fails where dpkg would wait for an answer. An update without a network is a success, unless asked otherwise.
APT_GET = r"""#!/bin/sh
echo "$*" >>"{log}"
case " $* " in
*" update "*)
    case "$*" in *APT::Update::Error-Mode=any*) exit {update} ;; esac
    ;;
*" install "*)
    case "$*" in *--force-confdef*--force-confold*) exit 0 ;; esac
    echo "end of file on stdin at conffile prompt" >&2
    exit 100
    ;;
esac
"""


class Machine:
    """A copy of bootstrap, and an apt whose network may be down."""

    def __init__(self, directory: Path) -> None:
        self.checkout = directory / "checkout"
        self.programs = directory / "bin"
        self.asked = directory / "asked"
        for place in (self.checkout, self.programs):
            place.mkdir()
        shutil.copy2(str(ROOT / "bootstrap"), str(self.checkout))
        self.add("dpkg-query", "#!/bin/sh\nexit 1\n")  # nothing is installed
        self.add("sudo", '#!/bin/sh\nexec "$@"\n')
        self.add("apt-get", APT_GET.format(log=self.asked, update=0))

    def add(self, name: str, script: str) -> None:
        (self.programs / name).write_text(script)
        (self.programs / name).chmod(0o755)

    def bootstrap(self, *words: str) -> Run:
        return run(words, cwd=self.checkout, env={"PATH": f"{self.programs}:{os.environ['PATH']}"})


@pytest.fixture(name="machine")
def fixture_machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_it_runs_in_bash_when_sh_is_asked(machine: Machine) -> None:
    done = machine.bootstrap("sh", "bootstrap", "help")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("usage: ./bootstrap demo")
    assert machine.bootstrap("sh", "bootstrap", "deps").returncode == 0


def test_a_command_that_is_none_is_named(machine: Machine) -> None:
    done = machine.bootstrap("./bootstrap", "chekc")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("bootstrap: there is no command chekc\nusage: ./bootstrap demo")
    assert not (machine.checkout / "build").exists()


def test_a_directory_that_no_library_is_loaded_from_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "my files").mkdir()
    machine = Machine(tmp_path / "my files")
    done = machine.bootstrap("./bootstrap", "demo")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert f'libraries from "{machine.checkout}": move the checkout' in done.stderr and not machine.asked.exists()


def test_a_changed_configuration_file_stops_nothing(machine: Machine) -> None:
    done = machine.bootstrap("./bootstrap", "deps")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " install valgrind gcc " in machine.asked.read_text() and "no network" not in done.stdout


def test_a_network_that_is_down_is_named(machine: Machine) -> None:
    machine.add("apt-get", APT_GET.format(log=machine.asked, update=100))
    done = machine.bootstrap("./bootstrap", "deps")
    assert "== no network, or a mirror that fails (see build/apt.log)" in done.stdout
    assert done.returncode == 0 and " install valgrind gcc " in machine.asked.read_text()
