# SPDX-License-Identifier: GPL-2.0-or-later
"""The manifest: what makes two runs comparable, and what --anonymize keeps to itself."""

import os
import platform
import re
import resource
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Dict, List

import pytest

from jmassif.model.records import Frame
from jmassif.model.run import Profile
from tests.harness import PYTHON, VALGRIND, compile_c, record, run

TEXT = "#include <stdlib.h>\nint main(int argc, char **argv) { free(malloc(1000)); return argc - 3; }\n"


def manifest(*options: str, **env: str) -> Dict[str, str]:
    return record([compile_c(TEXT, "-fno-builtin"), "one two", "x=3"], options, env=env).profile.manifest


def test_the_program_and_its_process() -> None:
    before = int(time.time() * 1000)
    compiled = compile_c(TEXT, "-fno-builtin")
    recording = record([compiled, "one two", "x=3"])
    found = recording.profile.manifest
    assert found["command"] == f"{compiled} one two x=3"
    assert recording.trace.name.endswith(f".{found['pid']}")
    assert int(found["ppid"]) == os.getpid()
    assert found["cwd"] == str(recording.directory)
    assert before <= int(found["start-unix-ms"]) <= time.time() * 1000
    start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(found["start-unix-ms"]) // 1000))
    assert found["start"] == start


def test_the_machine() -> None:
    found = manifest(USER="somebody")
    assert found["arch"] == {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    assert found["kernel"] == platform.release()
    assert found["host"] == socket.gethostname()
    assert found["user"] == "somebody"
    assert int(found["page-size"]) == os.sysconf("SC_PAGE_SIZE")
    assert int(found["cpus"]) == os.sysconf("SC_NPROCESSORS_CONF")
    total = re.search(r"^MemTotal: *(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    assert total is not None
    assert int(found["mem-total-bytes"]) == int(total.group(1)) * 1024
    is_a_board = Path("/proc/device-tree/model").exists()
    assert ("board" in found) == is_a_board
    assert found["memory"] == ("unified" if Path("/etc/nv_tegra_release").exists() else "discrete")


def test_the_versions() -> None:
    found = manifest()
    assert run([VALGRIND, "--version"]).stdout.strip() == f"valgrind-{found['valgrind']}"
    assert re.fullmatch(r"\d+\.\d+\.\d+", found["jmassif"])
    assert found["time-unit"] == "ms"


def test_the_packages_that_dpkg_knows() -> None:
    if shutil.which("dpkg-query") is None:
        pytest.skip("no dpkg here")
    query = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libc6"], stdout=subprocess.PIPE)
    assert manifest().get("package.libc6") == query.stdout.decode()


def test_the_environment_that_changes_how_memory_is_used() -> None:
    found = manifest(
        CUDA_VISIBLE_DEVICES="0,1",
        PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:64 =\\",
        CUDA_odd_name="1",
        MY_TOKEN="secret",
    )
    assert found["env.CUDA_VISIBLE_DEVICES"] == "0,1"
    assert found["env.PYTORCH_CUDA_ALLOC_CONF"] == "max_split_size_mb:64 =\\"
    assert found["env.CUDA_odd_name"] == "1"
    assert not any("MY_TOKEN" in key or "secret" in text for key, text in found.items())


@pytest.mark.parametrize("host", ["valgrind", "native"])
def test_the_place_in_a_distributed_job_is_that_of_its_launcher(host: str) -> None:
    names = "RANK LOCAL_RANK WORLD_SIZE TORCHELASTIC_RUN_ID OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE"
    given = {
        name: str(n) for n, name in enumerate(f"{names} SLURM_PROCID SLURM_NTASKS SLURM_LOCALID SLURM_JOB_ID".split())
    }
    others = {"RANKS": "1", "SLURM_JOB_USER": "somebody"}
    found = record([compile_c(TEXT, "-fno-builtin"), "x", "y"], env={**given, **others}, host=host).profile.manifest
    assert {key[4:]: value for key, value in found.items() if key[4:] in {**given, **others}} == given


def test_a_variable_that_the_program_sets_is_what_holds_when_it_is_asked_for() -> None:
    """As PyTorch asks when it is first used: by getenv, after a script has set os.environ."""
    script = """
import ctypes, os
getenv = ctypes.CDLL(None).getenv
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
os.environ["PYTORCH_NEVER_ASKED"] = "1"
os.environ["PYTORCH_ODD NAME"] = "1"
del os.environ["CUDA_MODULE_LOADING"]
for name in (b"PYTORCH_CUDA_ALLOC_CONF", b"PYTORCH_ODD NAME", b"PYTORCH_UNSET", b"CUDA_MODULE_LOADING", b"CUDA_VISIBLE_DEVICES"):
    getenv(name)
for i in range(400):
    os.environ["CUDA_%d" % i] = "x"
    getenv(b"CUDA_%d" % i)
"""
    environment = {
        "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64",
        "CUDA_MODULE_LOADING": "LAZY",
        "CUDA_VISIBLE_DEVICES": "0",
    }
    recording = record([PYTHON, "-S", "-c", script], env=environment, status=0)
    found = recording.profile.manifest
    assert found["env.PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"
    assert (found["env.CUDA_MODULE_LOADING"], found["env.CUDA_VISIBLE_DEVICES"]) == ("", "0")
    assert not {"env.PYTORCH_NEVER_ASKED", "env.PYTORCH_UNSET", "env.PYTORCH_ODD NAME"} & set(found)
    assert found["env.CUDA_9"] == "x" and "env.CUDA_399" not in found


def test_the_interpreters_version_is_seen() -> None:
    found = record([PYTHON, "-S", "-c", "pass"]).profile.manifest
    major_minor = run([PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).stdout.strip()
    assert found["python"].startswith(major_minor)


def test_the_objects_that_were_loaded_are_told_with_their_sonames() -> None:
    profile = record([compile_c(TEXT, "-fno-builtin")]).profile
    sonames = {Path(loaded.path).name: loaded.soname for loaded in profile.objects}
    assert sonames["libc.so.6"] == "libc.so.6"
    assert sonames["program"] == ""
    for loaded in profile.objects:
        assert Path(loaded.path).exists() and loaded.size > 0


# ---- anonymity --------------------------------------------------------------------------------


def test_anonymize_leaves_nobodys_name_in_the_trace(tmp_path: Path) -> None:
    """Everything of the program lies in a home directory: itself, its source, its library, its cache."""
    home = tmp_path / "home" / "alice-the-user"
    (home / "src").mkdir(parents=True)
    library_source, source = home / "src" / "part.c", home / "src" / "main.c"
    library_source.write_text("#include <stdlib.h>\nchar *part(void) { return malloc(5000); }\n")
    source.write_text("char *part(void);\nint main(void) { return part() == 0; }\n")
    library, program = home / "libpart.so", home / "program"
    subprocess.run(["gcc", "-g", "-shared", "-fpic", "-o", library, library_source], check=True)
    subprocess.run(["gcc", "-g", "-o", program, source, library], check=True)
    env = {
        "HOME": str(home),
        "USER": "alice-the-user",
        "LOGNAME": "alice-the-user",
        "CUDA_CACHE_PATH": f"{home}/.nv:/opt/cache:{home}/more",
        "PYTORCH_KERNEL_CACHE_PATH": str(home),
    }
    arguments = ["--token=very-secret", f"{home}/data"]

    anonymous = record([program, *arguments], ["--anonymize=yes"], env=env, cwd=home)
    trace = anonymous.trace.read_bytes()
    for name in (str(home), "alice-the-user", "very-secret", "home/alice"):
        assert name.encode() not in trace
    assert f"m host {socket.gethostname()}\n".encode() not in trace
    found = anonymous.profile.manifest
    assert found["command"] == "program"
    assert not {"host", "user", "cwd"} & set(found)
    # What helps remains.
    assert found["env.CUDA_CACHE_PATH"] == "~/.nv:/opt/cache:~/more"
    objects = {loaded.path for loaded in anonymous.profile.objects}
    assert {"~/program", "~/libpart.so"} <= objects
    frames = {(frame.function, frame.file, frame.object) for frame in all_frames(anonymous.profile)}
    assert ("part", "~/src/part.c", "~/libpart.so") in frames
    assert ("main", "~/src/main.c", "~/program") in frames

    # The counter-check: without it all of that is there.
    named = record([program, *arguments], env=env, cwd=home)
    for name in (str(home), "m user alice-the-user", "very-secret", f"m host {socket.gethostname()}"):
        assert name.encode() in named.trace.read_bytes()


def all_frames(profile: Profile) -> List[Frame]:
    found = {frame for account in profile.counts() for frame in profile.stack(profile.accounts[account].node)}
    return [profile.frame(frame) for frame in found]


def test_anonymize_does_without_a_home(tmp_path: Path) -> None:
    for home in ("", "/", str(tmp_path)):
        recording = record([compile_c(TEXT, "-fno-builtin"), "a", "b"], ["--anonymize=yes"], env={"HOME": home})
        assert recording.returncode == 0
        assert any(loaded.path.endswith("/program") for loaded in recording.profile.objects)


def test_a_long_command_takes_no_time() -> None:
    arguments = [f"{i:010d}" for i in range(60000)]
    seconds = []
    for n in (15000, 60000):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        recording = record(["/bin/true", *arguments[:n]])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert recording.returncode == 0, recording.stderr
        assert recording.profile.manifest["command"] == " ".join(["/bin/true", *arguments[:n]])
    # Four times the arguments, where sixteen times the time would be the square.
    assert seconds[1] < 3 * seconds[0] + 1
