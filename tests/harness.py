# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests share: programs to compile, runs under jmassif and massif, build trees.

Everything that is made lies below the build tree (the environment variable JMASSIF_BUILD, else build/), so nothing is
made twice and a clean build tree starts from nothing. Tests run in several processes at once: what is made is made under
a lock, or under another name and moved into place.
"""

import contextlib
import fcntl
import filecmp
import functools
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import pytest

from jmassif.model.run import Profile
from jmassif.reader.builder import load_file

# What records: "valgrind", or "native" for the preloaded recorder (tests/hosts.py).
HOST = os.environ.get("JMASSIF_TEST_HOST") or "valgrind"

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("JMASSIF_BUILD") or ROOT / "build").resolve()
VALGRIND = os.environ.get("VALGRIND") or "valgrind"
MADE = BUILD / "tests" / "made"  # by tests
PYCACHE = MADE / "pycache"  # of the tests' and the reporter's own processes

# For tests of packages only: what packaging/cache names.
_USERS_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
os.environ.setdefault("JMASSIF_BUILD_CACHE", str(_USERS_CACHE / "jmassif-build"))

# Nothing is kept from one test to the next, nor in the user's home: below /dev/null nobody can make a directory. Unless
# JMASSIF_KEPT names one, to run all of them with translations of those before.
os.environ["XDG_CACHE_HOME"] = os.environ.get("JMASSIF_KEPT", "/dev/null/kept")

PYTHON = "/usr/bin/python3"  # the one that the distribution's packages are for

Argument = Union[str, Path]
ARCH = "arm64" if platform.machine() == "aarch64" else "amd64"  # as Valgrind names it

# Where a distribution's cross compiler keeps the C library of its target.
ARM64_SYSROOT = Path("/usr/aarch64-linux-gnu")
ARM64_VALGRIND = BUILD / "compat" / "arm64"
ARM64_PYTHON = BUILD / "compat" / "arm64-python"


class Run(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


class Recording:
    """A finished run under jmassif. A temporary directory lives as long as this object."""

    def __init__(self, run: Run, directory: "Union[Path, tempfile.TemporaryDirectory[str]]") -> None:
        self._directory = directory
        self._profiles: Dict[Path, Profile] = {}
        self.returncode = run.returncode
        self.stdout = run.stdout
        self.stderr = run.stderr
        self.directory = directory if isinstance(directory, Path) else Path(directory.name)

    @property
    def traces(self) -> List[Path]:
        """Oldest process first."""
        found = self.directory.glob("jmassif.out.*")
        return sorted(found, key=lambda path: [int(n) for n in re.findall(r"\d+", path.name)])

    @property
    def trace(self) -> Path:
        assert self.traces, f"no trace was written; stderr was:\n{self.stderr}"
        return self.traces[0]

    def load(self, trace: Path) -> Profile:
        if trace not in self._profiles:
            self._profiles[trace] = load_file(str(trace))
        return self._profiles[trace]

    @property
    def profile(self) -> Profile:
        """Of the first trace."""
        return self.load(self.trace)


class MassifPeak(NamedTuple):
    """Bytes at massif's peak."""

    heap: int
    extra: int
    stacks: int


def run(
    command: Sequence[Argument],
    env: Optional[Mapping[str, str]] = None,
    cwd: Optional[Path] = None,
    timeout: float = 120,
) -> Run:
    """Runs to the end and captures what is printed. `env` is added to this process' environment."""
    done = subprocess.run(
        [str(argument) for argument in command],
        env={**os.environ, **(env or {})},
        cwd=None if cwd is None else str(cwd),
        timeout=timeout,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    return Run(
        done.returncode,
        done.stdout.decode("utf-8", "backslashreplace"),
        done.stderr.decode("utf-8", "backslashreplace"),
    )


def check_run(command: Sequence[Argument], cwd: Optional[Path] = None, timeout: float = 600) -> str:
    """Runs what must succeed, and returns its output."""
    done = run(command, cwd=cwd, timeout=timeout)
    words = " ".join(str(argument) for argument in command)
    assert done.returncode == 0, f"{words} failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


# ---- profiling -------------------------------------------------------------------------------


def record(
    command: Sequence[Argument],
    options: Sequence[str] = (),
    env: Optional[Mapping[str, str]] = None,
    cwd: Optional[Path] = None,
    timeout: float = 120,
    build: Path = BUILD,
    valgrind: str = VALGRIND,
    launcher: Sequence[Argument] = (),
    status: Optional[int] = None,
    host: str = HOST,
) -> Recording:
    """Runs a command under the jmassif of a build tree, in a temporary directory unless `cwd` says otherwise. `launcher` is
    what starts Valgrind. `status`: how the program must end; None for anything. `host`: "valgrind" or "native".

    Without pages, unless `options` ask for them: those are sampled, and most tests compare sums that must be exact.
    """
    directory = tempfile.TemporaryDirectory(prefix="jmassif-test-")
    done = _record(Path(directory.name), command, options, env, cwd, timeout, build, valgrind, launcher, host)
    assert status is None or done.returncode == status, done.stderr
    return Recording(done, directory)


def _record(
    directory: Path,
    command: Sequence[Argument],
    options: Sequence[str],
    env: Optional[Mapping[str, str]],
    cwd: Optional[Path],
    timeout: float,
    build: Path,
    valgrind: str,
    launcher: Sequence[Argument],
    host: str,
) -> Run:
    started, environment = recorder(f"{directory}/jmassif.out.%p", ["--pages=no", *options], env, build, valgrind, host)
    return run([*launcher, *started, *command], env=environment, cwd=cwd or directory, timeout=timeout)


def recorder(
    out_file: Argument,
    options: Sequence[str] = (),
    env: Optional[Mapping[str, str]] = None,
    build: Path = BUILD,
    valgrind: str = VALGRIND,
    host: str = HOST,
) -> Tuple[List[Argument], Dict[str, str]]:
    """What comes before a program's command line so that it is recorded, and what belongs into the environment. Whoever
    names a Valgrind gets it."""
    options = [f"--jmassif-out-file={out_file}", *options]
    env = dict(env or {})
    if valgrind != VALGRIND or host == "valgrind":
        return [valgrind, "--tool=jmassif", *options], {"VALGRIND_LIB": str(build / ".in_place"), **env}
    # The program alone gets them, not what launches it.
    preloaded = [str(native_library(build)), *filter(None, [env.pop("LD_PRELOAD", "")])]
    variables = {"LD_PRELOAD": ":".join(preloaded), "JMASSIF_NATIVE": "\n".join(map(_native_option, options))}
    return ["env", *(f"{name}={value}" for name, value in variables.items())], env


def recorder_on_path(host: str = HOST) -> Dict[str, str]:
    """The environment in which the Python package finds the recorder of the build tree."""
    if host == "valgrind":
        return {"VALGRIND_LIB": str(BUILD / ".in_place")}

    def make(directory: Path) -> None:
        text = (ROOT / "packaging" / "jmassif.in").read_text().replace("@valgrind@", "/absent/valgrind")
        command = directory / "bin" / "jmassif"
        command.parent.mkdir()
        (directory / "share" / "jmassif").mkdir(parents=True)
        (directory / "share" / "jmassif" / "python").symlink_to(ROOT / "reporter")
        command.write_text(text.replace("@tools@", str(BUILD / ".in_place")))
        command.chmod(0o755)

    # make check names a Valgrind, which would be taken.
    return {"PATH": f"{made_each_run('on-path', make) / 'bin'}:{os.environ['PATH']}", "VALGRIND": ""}


def native_library(build: Path = BUILD) -> Path:
    return build / "jmassif" / "libjmassif-native.so"


def _native_option(option: str) -> str:
    return {"-q": "--quiet"}.get(option, option)


def recorded(
    command: Sequence[Argument],
    options: Sequence[str] = (),
    env: Optional[Mapping[str, str]] = None,
    timeout: float = 120,
    build: Path = BUILD,
    valgrind: str = VALGRIND,
    launcher: Sequence[Argument] = (),
    status: Optional[int] = 0,
    host: str = HOST,
) -> Recording:
    """record(), once for all tests and workers that ask for the same: for programs that do the same in every run, and for
    tests that write nothing into the recording. Kept until the recorder or a file that the arguments name has changed.
    """
    words = [*map(str, (*launcher, *command)), *options, *(env or {}).values()]
    named = [_contents(path) for word in words for path in _paths(word)]
    key = _digest((words, sorted(env or {}), named, _tool(build), host))
    if key not in _recorded:

        def make(directory: Path) -> None:
            done = _record(directory, command, options, env, None, timeout, build, valgrind, launcher, host)
            (directory / "finished.json").write_text(json.dumps(done))

        directory = made_once(key, make)
        while len(_recorded) > 30:  # with their profiles
            _recorded.pop(next(iter(_recorded)))
        _recorded[key] = Recording(Run(*json.loads((directory / "finished.json").read_text())), directory)
    made = _recorded[key]
    assert status is None or made.returncode == status, made.stderr
    return made


_recorded: Dict[str, Recording] = {}


def made_once(key: object, make: Callable[[Path], None], name: str = "") -> Path:
    """A directory that is filled once for all workers, and kept until the recorder has changed; under a name, until another
    key has that name."""
    directory = _recordings() / name / _digest((HOST, key))
    finished = directory.with_suffix(".finished")
    with lock(f"recording-{name or directory.name}"):
        if not finished.exists():
            shutil.rmtree(str(directory.parent if name else directory), ignore_errors=True)
            directory.mkdir(parents=True)
            make(directory)
            finished.touch()
    return directory


@functools.lru_cache(maxsize=None)
def _recordings() -> Path:
    """The directory of this build's recordings. Recordings of other builds are removed."""
    directory = MADE / "recordings" / _digest((_tool(BUILD), os.environ["XDG_CACHE_HOME"]))
    with lock("recordings"):
        if not directory.exists():
            shutil.rmtree(str(directory.parent), ignore_errors=True)
            directory.mkdir(parents=True)
    return directory


@functools.lru_cache(maxsize=None)
def _tool(build: Path) -> str:
    """A digest of the recorders and of the Valgrind that runs one."""
    files = [*sorted((build / ".in_place").glob("*jmassif*")), Path(shutil.which(VALGRIND) or VALGRIND)]
    files += filter(Path.exists, [native_library(build)])
    return _digest([_contents(path) for path in files])


def _paths(word: str) -> Iterator[Path]:
    """The files and directories that a word of a command line or of the environment names."""
    for part in (word, *re.split("[=:]", word)):
        if "/" in part and "\n" not in part and os.path.exists(part):
            yield Path(part)


def _contents(path: Path) -> str:
    """A digest of what a path brings into a run: a directory's modules and libraries, a script with the modules beside it, a
    simulated program with the simulation's libraries."""
    files = [path] if path.is_file() else []
    if path.is_dir() or path.suffix == ".py":
        directory = path if path.is_dir() else path.parent
        files += [file for pattern in ("*.py", "*/*.py", "*.so*") for file in sorted(directory.glob(pattern))]
    if BUILD / "sim" in path.parents:
        files += sorted((BUILD / "sim").glob("*.so*"))
    return _digest([(str(file), _file_digest(file, file.stat().st_mtime_ns)) for file in files if file.is_file()])


@functools.lru_cache(maxsize=None)
def _file_digest(path: Path, _mtime_ns: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:24]


def record_arm64(
    command: Sequence[Argument],
    options: Sequence[str] = (),
    env: Optional[Mapping[str, str]] = None,
    timeout: float = 300,
) -> Recording:
    """Like record(), on an emulated arm64 machine."""
    return record(command, options, **_emulated(env, timeout))


def record_arm64_natively(
    command: Sequence[Argument],
    options: Sequence[str] = (),
    env: Optional[Mapping[str, str]] = None,
    timeout: float = 300,
) -> Recording:
    """Like record_arm64(), by the preloaded recorder."""
    directory = tempfile.TemporaryDirectory(prefix="jmassif-test-")
    library = native_library(arm64_build())
    lines = "\n".join(["--pages=no", f"--jmassif-out-file={directory.name}/jmassif.out.%p", *options])
    variables = {"LD_PRELOAD": str(library), "JMASSIF_NATIVE": lines, **(env or {})}
    words: List[Argument] = ["qemu-aarch64-static", "-L", ARM64_SYSROOT]
    for name, value in variables.items():
        words += ["-E", f"{name}={value}"]
    return Recording(run([*words, *command], cwd=Path(directory.name), timeout=timeout), directory)


def recorded_arm64(
    command: Sequence[Argument],
    options: Sequence[str] = (),
    env: Optional[Mapping[str, str]] = None,
    timeout: float = 300,
    status: Optional[int] = 0,
) -> Recording:
    """Like recorded(), on an emulated arm64 machine."""
    return recorded(command, options, **_emulated(env, timeout), status=status)


def _emulated(env: Optional[Mapping[str, str]], timeout: float) -> Dict[str, Any]:
    """Start the tool itself with the launcher's environment: the emulator runs one program and does not follow an exec into
    another."""
    build = arm64_build()
    return {
        "env": {"VALGRIND_LAUNCHER": str(ARM64_VALGRIND / "usr/bin/valgrind.bin"), **(env or {})},
        "timeout": timeout,
        "build": build,
        "valgrind": str(build / ".in_place" / "jmassif-arm64-linux"),
        "launcher": ["qemu-aarch64-static", "-L", ARM64_SYSROOT],
    }


def massif(
    command: Sequence[Argument],
    options: Sequence[str] = ("--peak-inaccuracy=0.0",),
    env: Optional[Mapping[str, str]] = None,
    cwd: Optional[Path] = None,
    timeout: float = 300,
) -> MassifPeak:
    """The peak that Valgrind's massif finds."""
    with tempfile.TemporaryDirectory(prefix="jmassif-test-") as directory:
        out_file = Path(directory) / "massif.out"
        done = run(
            [VALGRIND, "--tool=massif", f"--massif-out-file={out_file}", *options, *command],
            env=env,
            cwd=cwd or Path(directory),
            timeout=timeout,
        )
        assert out_file.exists(), f"massif wrote nothing; stderr was:\n{done.stderr}"
        return massif_peak(out_file.read_text())


def massif_peak(text: str) -> MassifPeak:
    """The snapshot marked as the peak, else the largest: massif marks none where nothing was ever freed."""
    largest = MassifPeak(0, 0, 0)
    for snapshot in text.split("#-----------\nsnapshot=")[1:]:
        fields = dict(re.findall(r"^(\w+)=(.*)$", snapshot, re.MULTILINE))
        sizes = MassifPeak(int(fields["mem_heap_B"]), int(fields["mem_heap_extra_B"]), int(fields["mem_stacks_B"]))
        if fields["heap_tree"] == "peak":
            return sizes
        largest = max(largest, sizes, key=sum)
    return largest


@functools.lru_cache(maxsize=None)
def need_module(name: str) -> None:
    """Skips where the interpreter that tests profile does not have it."""
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({name!r}) is None)"
    if run([PYTHON, "-c", code]).returncode != 0:
        pytest.skip(f"{name} is not installed")


# ---- programs --------------------------------------------------------------------------------


def compile_c(source: Argument, *flags: str, compiler: str = "", suffix: str = ".c") -> Path:
    """Compiles a program, given as its text or as a Path, and returns the executable (or what -o would be).

    `suffix` tells the language of a text: ".c" or ".cc".
    """
    if isinstance(source, Path):
        text, name, suffix = source.read_text(), source.stem, source.suffix
        flags = ("-I", str(source.parent), *flags)
    else:
        text, name = source, "program"
    if not compiler:
        compiler = "gcc" if suffix == ".c" else "g++"
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    linked = [_contents(path) for flag in flags for path in _paths(flag) if path.is_file()]
    key = _digest((compiler, flags, suffix, text, _included(text, flags), linked))
    program = MADE / "cache" / key / name
    with lock(key):
        if not program.exists():
            code = program.with_name(f"{name}{suffix}")
            code.parent.mkdir(parents=True, exist_ok=True)
            code.write_text(text)
            unfinished = program.with_name(f"{name}.unfinished")
            check_run([compiler, "-g", "-o", unfinished, code, *flags])
            unfinished.rename(program)
    return program


def written(text: str, name: str) -> Path:
    """A file with this text, at a path that is the same wherever it is asked for: an argument for recorded()."""
    path = MADE / "cache" / _digest((text, name)) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        _replace(path, text)
    return path


def _included(text: str, flags: Sequence[str]) -> Dict[str, str]:
    """By path: the files that a text includes by a name in quotes, and what they include so, as far as -I leads to them."""
    directories = [Path(after) for flag, after in zip(flags, flags[1:]) if flag == "-I"]
    directories += [Path(flag[2:]) for flag in flags if flag.startswith("-I") and flag != "-I"]
    found: Dict[str, str] = {}
    texts = [text]
    while texts:
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', texts.pop(), re.MULTILINE):
            paths = [directory / name for directory in directories if (directory / name).is_file()]
            if paths and str(paths[0]) not in found:
                texts.append(paths[0].read_text())
                found[str(paths[0])] = texts[-1]
    return found


def compile_arm64(source: Argument, *flags: str, suffix: str = ".c") -> Path:
    """compile_c() for the emulated arm64 machine."""
    if isinstance(source, Path):
        suffix = source.suffix
    compiler = "aarch64-linux-gnu-" + ("gcc" if suffix == ".c" else "g++")
    return compile_c(source, *flags, compiler=compiler, suffix=suffix)


def _replace(path: Path, text: str) -> None:
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_text(text)
    unfinished.rename(path)


# ---- build trees -----------------------------------------------------------------------------


@contextlib.contextmanager
def lock(name: str) -> Iterator[None]:
    """Held by one test process at a time."""
    directory = MADE / "locks"
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@functools.lru_cache(maxsize=None)
def source_tree() -> Path:
    """An up-to-date copy of the sources with a `configure`: the original may be configured itself, or be read-only."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("the build is tested from a git checkout")
    copy = MADE / "source"
    with lock("source"):
        copy.mkdir(parents=True, exist_ok=True)
        listing = copy.with_name("source.list")
        before = set(listing.read_text().splitlines()) if listing.exists() else set()
        names = check_run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT).splitlines()
        present = {name for name in names if (ROOT / name).is_file()}
        for name in before - present:
            with contextlib.suppress(FileNotFoundError):
                (copy / name).unlink()
        changed = [
            name for name in sorted(present) if not (copy / name).exists() or not filecmp.cmp(ROOT / name, copy / name)
        ]
        for name in changed:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(str(ROOT / name), str(copy / name))
        listing.write_text("\n".join(sorted(present)))
        if not (copy / "configure").exists() or any(re.search(r"\.(ac|am|m4)$", name) for name in changed):
            check_run(["autoreconf", "-i"], cwd=copy)
    return copy


@functools.lru_cache(maxsize=None)
def configure_and_make(tree: Path, *options: str) -> Path:
    """Brings a build tree that lies outside of its sources up to date, and returns it. Without the page: that lies in the
    sources, which several trees share."""
    source = source_tree()
    with lock(tree.name):
        tree.mkdir(parents=True, exist_ok=True)
        if not (tree / "config.status").exists():
            check_run([source / "configure", "--quiet", "--disable-page", *options], cwd=tree)
        check_run(["make", "--no-print-directory", f"-j{os.cpu_count()}"], cwd=tree)
    return tree


def made_each_run(name: str, make: Callable[[Path], None]) -> Path:
    """MADE/name, which is filled anew in each run of the tests, once for all workers."""
    directory, stamp = MADE / name, MADE / f"{name}.run"
    this_run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    with lock(name):
        if not stamp.exists() or stamp.read_text() != this_run:
            shutil.rmtree(str(directory), ignore_errors=True)
            directory.mkdir(parents=True)
            make(directory)
            _replace(stamp, this_run)
    return directory


def released(pattern: str) -> List[Path]:
    """Archives and packages of `make release` in the build tree, by name. Skips the test where there are none; fails it under
    ./bootstrap check, which makes them."""
    found = sorted(BUILD.glob(pattern))
    if not found:
        reason = f"no {pattern} in {BUILD}: make release makes it, which takes some minutes the first time"
        if os.environ.get("JMASSIF_BOOTSTRAP"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return found


def arm64_build() -> Path:
    """The build tree for arm64. Skips the test where the means to cross-build or to run it are missing."""
    if ARCH == "arm64":
        pytest.skip("this machine is arm64 itself")
    for program in ("aarch64-linux-gnu-gcc", "qemu-aarch64-static"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    if not ARM64_VALGRIND.exists():
        pytest.skip(f"no arm64 Valgrind in {ARM64_VALGRIND}: ./bootstrap check fetches it")
    return configure_and_make(MADE / "arm64", "--host=aarch64-linux-gnu", f"--with-valgrind={ARM64_VALGRIND}")


def arm64_python() -> Tuple[Path, Dict[str, str]]:
    """An interpreter for record_arm64(), and the environment that it needs. Skips the test where there is none."""
    arm64_build()
    if not ARM64_PYTHON.exists():
        pytest.skip(f"no arm64 Python in {ARM64_PYTHON}: ./bootstrap check fetches it")
    libraries = ":".join(str(ARM64_PYTHON / directory / "aarch64-linux-gnu") for directory in ("lib", "usr/lib"))
    environment = {"PYTHONHOME": str(ARM64_PYTHON / "usr"), "LD_LIBRARY_PATH": libraries}
    return ARM64_PYTHON / "usr/bin/python3.11", environment


def sim_build() -> Path:
    """The directory of the simulated board's libraries."""
    directory = BUILD / "sim"
    with lock("sim"):
        check_run([ROOT / "tests" / "sim" / "build.sh", directory])
    return directory


def sim_build_arm64() -> Path:
    """sim_build() for the emulated machine."""
    directory = MADE / "sim-arm64"
    with lock("sim-arm64"):
        check_run([ROOT / "tests" / "sim" / "build.sh", directory, "aarch64-linux-gnu-gcc"])
    return directory


# ---- what a profile says ---------------------------------------------------------------------


def user_function(profile: Profile, node: int, program: Path) -> str:
    """The innermost function of a stack that is the program's own; "" where there is none."""
    for frame_id in profile.stack(node):
        frame = profile.frame(frame_id)
        if os.path.basename(frame.object) == program.name:
            return frame.function
    return ""


def allocated_by_function(profile: Profile, program: Path, kind: str = "heap") -> Dict[str, Tuple[int, int]]:
    """By function of the program: the bytes and blocks of a kind that it allocated in all."""
    sums: Dict[str, Tuple[int, int]] = {}
    for account_id, counts in profile.counts().items():
        account = profile.accounts[account_id]
        function = user_function(profile, account.node, program)
        if account.kind == kind and function:
            n_bytes, n_blocks = sums.get(function, (0, 0))
            sums[function] = (n_bytes + counts.bytes, n_blocks + counts.blocks)
    return sums


def held_at_peak(profile: Profile, which: str, kinds: Sequence[str]) -> Dict[Tuple[str, str], Tuple[int, int]]:
    """By kind and owner: the bytes and blocks of these kinds at a peak ("total", "host" or "device")."""
    sums: Dict[Tuple[str, str], Tuple[int, int]] = {}
    for account_id, (live_bytes, live_blocks) in profile.peak_composition(which).items():
        _, kind, owner = profile.accounts[account_id]
        if kind in kinds:
            n_bytes, n_blocks = sums.get((kind, owner), (0, 0))
            sums[kind, owner] = (n_bytes + live_bytes, n_blocks + live_blocks)
    return sums
