# SPDX-License-Identifier: GPL-2.0-or-later
"""Every process that the program becomes or begets has one true file of its own, and a child that only calls exec has none."""

from pathlib import Path
from typing import Dict, List

import pytest

from jmassif.model.run import Profile
from tests.harness import PYTHON, ROOT, Recording, compile_c, record, run
from tests.tool.programs import assert_readable, library, live_at, program, run_both

FORKS = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static char *of_parent(size_t n) { return malloc(n); }
static char *of_child(size_t n) { return malloc(n); }
int main(void)
{
    char *before = of_parent(1000000);
    free(of_parent(5000000));
    pid_t child = fork();
    if (child == 0) {
        of_child(2000);
        free(before);
        of_child(300000);
        _exit(5);
    }
    of_parent(70000);
    int status;
    waitpid(child, &status, 0);
    of_parent(7);
    dprintf(1, "%d\\n", WEXITSTATUS(status));
    _exit(6);
}
"""


def by_pid(recording: Recording) -> Dict[int, Profile]:
    profiles = [recording.load(trace) for trace in recording.traces]
    return {int(profile.manifest["pid"]): profile for profile in profiles}


def commands(recording: Recording) -> List[str]:
    return sorted(Path(recording.load(trace).manifest["command"].split()[0]).name for trace in recording.traces)


def parent_and_child(recording: Recording) -> List[Profile]:
    profiles = by_pid(recording)
    assert len(profiles) == 2
    return sorted(profiles.values(), key=lambda profile: "forked-from" in profile.manifest)


def test_parent_and_child_each_have_a_true_file() -> None:
    recording = run_both([compile_c(FORKS, "-fno-builtin")])
    assert recording.stdout == "5\n"
    assert recording.stderr.count("jmassif: next: ") == 1
    parent, child = parent_and_child(recording)
    assert child.manifest["forked-from"] == parent.manifest["pid"] == child.manifest["ppid"]
    assert child.manifest["command"] == parent.manifest["command"]
    assert child.snapshots[0].reason == "fork"
    assert [snapshot.reason for snapshot in parent.snapshots].count("fork") == 0
    # The opening balance is what the parent held: its million.
    assert live_at(child, 0) == 1000000
    assert live_at(child, -1) == 302000
    assert live_at(parent, -1) == 1000000 + 70000 + 7
    assert parent.end is not None and (parent.end.reason, parent.end.code) == ("exit", 6)
    assert child.end is not None and (child.end.reason, child.end.code) == ("exit", 5)
    # The child's clock goes on from the parent's start.
    assert 0 < child.snapshots[0].time <= child.end.time <= parent.end.time + 1000
    assert child.manifest["start-unix-ms"] == parent.manifest["start-unix-ms"]


def test_the_childs_peak_counts_what_it_inherited() -> None:
    _, child = parent_and_child(record([compile_c(FORKS, "-fno-builtin")]))
    assert child.peaks["total"].by_kind["heap"] == 1000000 + 2000


def test_a_name_without_a_pid_gives_the_child_another_file(tmp_path: Path) -> None:
    compiled = compile_c(FORKS, "-fno-builtin")
    recording = record([compiled], [f"--jmassif-out-file={tmp_path}/trace"])
    traces = sorted(tmp_path.iterdir())
    assert len(traces) == 2 and traces[0].name == "trace"
    parent, child = (recording.load(trace) for trace in traces)
    assert child.manifest["forked-from"] == parent.manifest["pid"]
    assert traces[1].name == f"trace.{child.manifest['pid']}"


GENERATIONS = """
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    // Two children and a grandchild, of which each has a block more than its parent.
    malloc(1000);
    for (int i = 0; i < 2; i++) {
        if (fork() == 0) {
            malloc(100);
            if (i == 1 && fork() == 0) {
                malloc(10);
                _exit(0);
            }
            while (wait(NULL) > 0)
                ;
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}
"""


@pytest.mark.parametrize("name", ["trace", "trace.%p", "trace.%n", "trace.%q{RUN}"])
def test_generations_of_children_do_not_write_to_one_file(name: str, tmp_path: Path) -> None:
    compiled = compile_c(GENERATIONS, "-fno-builtin")
    recording = record([compiled], [f"--jmassif-out-file={tmp_path}/{name}"], env={"RUN": "r"}, status=0)
    profiles = [recording.load(trace) for trace in tmp_path.iterdir()]
    assert sorted(live_at(profile, -1) for profile in profiles) == [1000, 1100, 1100, 1110]
    assert len({profile.manifest["pid"] for profile in profiles}) == 4
    assert all(profile.is_complete for profile in profiles)


# ---- exec -------------------------------------------------------------------------------------

STARTS_OTHERS = {
    "system": "system({command});",
    "popen": 'pclose(popen({command}, "w"));',
    "fork and exec": 'if (!fork()) {{ execl("/bin/sh", "sh", "-c", {command}, NULL); _exit(9); }} wait(NULL);',
    "fork, malloc and exec": "if (!fork()) {{ for (int i = 0; i < 99; i++) malloc(9); "
    'execl("/bin/sh", "sh", "-c", {command}, NULL); _exit(9); }} wait(NULL);',
    "vfork": 'if (!vfork()) {{ execl("/bin/sh", "sh", "-c", {command}, NULL); _exit(9); }} wait(NULL);',
    "posix_spawn": 'char *arguments[] = {{"sh", "-c", {command}, NULL}}; '
    'posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environ); wait(NULL);',
}


def starter(how: str) -> Path:
    statements = STARTS_OTHERS[how].format(command='"/bin/echo from the child"')
    text = (
        "#define _GNU_SOURCE\n#include <spawn.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <sys/wait.h>\n"
        f"#include <unistd.h>\nint main(void) {{ pid_t pid = 0; malloc(5000); {statements} return 3 + 0 * pid; }}\n"
    )
    return compile_c(text, "-fno-builtin", "-w")


@pytest.mark.parametrize("how", list(STARTS_OTHERS))
def test_a_child_that_becomes_another_program_leaves_no_file(how: str) -> None:
    recording = run_both([starter(how)])
    assert recording.stdout == "from the child\n"
    assert recording.returncode == 3
    assert len(recording.traces) == 1
    assert recording.profile.is_complete


@pytest.mark.parametrize("how", ["system", "posix_spawn"])
def test_with_trace_children_every_program_has_its_file(how: str) -> None:
    recording = run_both([starter(how)], "--trace-children=yes")
    assert recording.stdout == "from the child\n"
    started = starter(how).name
    # The shell may become /bin/echo itself, or beget it: both are the shell's right.
    assert {started, "sh", "echo"} >= set(commands(recording)) >= {started, "sh"}
    for trace in recording.traces:
        assert_readable(trace)
        assert recording.load(trace).is_complete


CHAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    // Becomes itself, one argument less.
    int left = atoi(argv[1]);
    malloc(1000 * (left + 1));
    char next[20];
    snprintf(next, sizeof next, "%d", left - 1);
    if (left)
        execl(argv[0], argv[0], next, NULL);
    puts("last");
    return 4;
}
"""


@pytest.mark.parametrize("name", ["trace.%p", "trace"])
def test_images_of_one_process_do_not_overwrite_each_other(name: str, tmp_path: Path) -> None:
    compiled = compile_c(CHAIN, "-fno-builtin")
    recording = record([compiled, "3"], ["--trace-children=yes", f"--jmassif-out-file={tmp_path}/{name}"])
    assert (recording.stdout, recording.returncode) == ("last\n", 4)
    profiles = {trace.name: recording.load(trace) for trace in tmp_path.iterdir()}
    assert len({profile.manifest["pid"] for profile in profiles.values()}) == 1
    first = min(profiles, key=len)
    expected = {first: 4000, f"{first}.2": 3000, f"{first}.3": 2000}
    assert {trace: live_at(profile, -1) for trace, profile in profiles.items() if trace in expected} == expected
    assert all(profile.is_complete for profile in profiles.values())
    assert [profile.snapshots[-1].reason for _, profile in sorted(profiles.items())] == ["exec"] * 3 + ["exit"]


def test_a_second_run_replaces_the_first_ones_file(tmp_path: Path) -> None:
    options = [f"--jmassif-out-file={tmp_path}/trace"]
    first = compile_c("#include <stdlib.h>\nint main(void) { return !malloc(111); }", "-fno-builtin")
    second = compile_c("#include <stdlib.h>\nint main(void) { return !malloc(222); }", "-fno-builtin")
    record([first], options)
    recording = record([second], options)
    assert [path.name for path in tmp_path.iterdir()] == ["trace"]
    assert live_at(recording.load(tmp_path / "trace"), -1) == 222


def test_programs_that_a_shell_starts_do_not_overwrite_its_file(tmp_path: Path) -> None:
    """A name without a pid, and several processes at once."""
    script = "/bin/echo one; /bin/echo two; (/bin/echo three; exit 3)"
    options = ["--trace-children=yes", f"--jmassif-out-file={tmp_path}/trace"]
    recording = record(["/bin/sh", "-c", script], options)
    assert (recording.stdout, recording.returncode) == ("one\ntwo\nthree\n", 3)
    profiles = [recording.load(trace) for trace in tmp_path.iterdir()]
    started = [Path(profile.manifest["command"].split()[0]).name for profile in profiles]
    assert started.count("echo") == 3
    assert started.count("sh") >= 1


def test_a_failing_exec_changes_nothing() -> None:
    text = (
        "#include <stdlib.h>\n#include <unistd.h>\n"
        'int main(void) { malloc(1000); execl("/no/such/file", "x", NULL); malloc(500); return 8; }'
    )
    recording = run_both([compile_c(text, "-fno-builtin")])
    profile = recording.profile
    assert live_at(profile, -1) == 1500
    assert profile.end is not None and (profile.end.reason, profile.end.code) == ("exit", 8)


def test_a_childs_failing_exec_leaves_a_true_file() -> None:
    text = (
        "#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\nint main(void) { malloc(1000); if (!fork())"
        ' { malloc(70); execl("/no/such/file", "x", NULL); _exit(127); } wait(NULL); return 0; }'
    )
    _, child = parent_and_child(run_both([compile_c(text, "-fno-builtin")]))
    assert live_at(child, -1) == 1070
    assert child.end is not None and child.end.code == 127


def test_threads_and_fork() -> None:
    """Only the thread that called fork lives on in the child."""
    text = """
    #include <pthread.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static pthread_barrier_t barrier;
    static void *other(void *unused)
    {
        malloc(10000);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        return unused;
    }
    int main(void)
    {
        pthread_t thread;
        pthread_barrier_init(&barrier, NULL, 2);
        pthread_create(&thread, NULL, other, NULL);
        pthread_barrier_wait(&barrier);
        int status = 0;
        if (fork() == 0) {
            free(malloc(200));
            malloc(3000);
            exit(12);
        }
        wait(&status);
        pthread_barrier_wait(&barrier);
        pthread_join(thread, NULL);
        printf("%d\\n", WEXITSTATUS(status));
        return 0;
    }
    """
    recording = run_both([compile_c(text, "-fno-builtin", "-pthread")])
    assert recording.stdout == "12\n"
    _, child = parent_and_child(recording)
    assert live_at(child, 0) >= 10000
    assert live_at(child, -1) == 10000 + 3000  # the C library gives up the other thread's bookkeeping in the child


SLOW_TO_LOAD = "void wait_inside(void);\n__attribute__((constructor)) static void load(void) { wait_inside(); }"
QUICK_TO_LOAD = "int quick = 1;"


@pytest.fixture(scope="module", name="forked_in_the_midst")
def fixture_forked_in_the_midst() -> Recording:
    slow = library(SLOW_TO_LOAD, "libslow_to_load.so")
    quick = library(QUICK_TO_LOAD, "libquick_to_load.so")
    forks = program("fork_in_thread.c", "-fno-builtin", "-pthread", f"-I{ROOT / 'jmassif'}", "-rdynamic", "-ldl")
    recording = run_both([forks, slow, quick])
    assert recording.stdout == "7\n"
    return recording


def test_a_new_thread_of_the_child_is_in_no_call_of_a_thread_that_is_gone(forked_in_the_midst: Recording) -> None:
    """Its number is that of the thread that was in dlopen when the other one forked."""
    parent, child = parent_and_child(forked_in_the_midst)
    (slow,) = [scope for scope in parent.scopes if scope.name == "dlopen libslow_to_load.so"]
    (quick,) = [scope for scope in child.scopes if scope.name == "dlopen libquick_to_load.so"]
    assert (quick.thread, quick.parent) == (slow.thread, 0)


def test_a_new_thread_of_the_child_ends_no_region_of_a_thread_that_is_gone(forked_in_the_midst: Recording) -> None:
    parent, child = parent_and_child(forked_in_the_midst)
    (region,) = parent.regions
    assert region.text == "of the parent" and region.end is not None
    (trace,) = [trace for trace in forked_in_the_midst.traces if forked_in_the_midst.load(trace) is child]
    ended = [line for line in trace.read_text("utf-8", "replace").splitlines() if line.startswith("D ")]
    assert child.regions == [] and ended == []


def test_pythons_subprocesses_leave_no_files() -> None:
    script = "import subprocess, sys\nprint(subprocess.check_output(['/bin/echo', 'hello']).decode())\nsys.exit(9)"
    command = [PYTHON, "-S", "-c", script]
    native = run(command)
    recording = record(command)
    assert (recording.stdout, recording.returncode) == (native.stdout, native.returncode) == ("hello\n\n", 9)
    assert len(recording.traces) == 1
