# SPDX-License-Identifier: GPL-2.0-or-later
"""--owners=FILE: rules that come before the built-in ones, and what is said about one that is no rule."""

import re
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from jmassif.model.run import Profile
from tests import harness
from tests.harness import Recording, compile_c, record
from tests.tool.programs import functions, library, linked_to

LIBRARY = """
#include <stdlib.h>
static char *allocate(size_t n) { char *p = malloc(n); p[0] = 1; return p; }
char *weights(size_t n) { char *p = allocate(n); p[0] = 1; return p; }
char *scratch(size_t n) { char *p = allocate(n); p[0] = 1; return p; }
"""
PROGRAM = """
#include <stdlib.h>
char *weights(size_t);
char *scratch(size_t);
static char *own(size_t n) { char *p = malloc(n); p[0] = 1; return p; }
static char *load(void) { char *p = weights(1000); p[0] = 1; return p; }
int main(void)
{
    char *all[] = {load(), scratch(2000), own(300)};
    return all[0][0] != 1;
}
"""


def recorded(tmp_path: Path, rules: str) -> Recording:
    lib = library(LIBRARY, "libnet-9335f6a2.so.8", "-fno-builtin")
    compiled = compile_c(PROGRAM, "-fno-builtin", *linked_to(lib))
    file = tmp_path / "my.rules"
    file.write_text(rules)
    return record([compiled], [f"--owners={file}"])


def owners(profile: Profile) -> Dict[int, str]:
    """By number of bytes."""
    found: Dict[int, str] = {}
    for account_id, counts in profile.counts().items():
        account = profile.accounts[account_id]
        if account.kind == "heap" and "main" in functions(profile, account.node):
            found[counts.bytes] = account.owner
    return found


BUILT_IN = {1000: "lib", 2000: "lib", 300: "app"}

# What a rules file says, and who then owns the bytes.
CASES: List[Tuple[str, Dict[int, str]]] = [
    ("", BUILT_IN),
    ("# only a comment\n\n   \t\n", BUILT_IN),
    ("net libnet*.so* *", {1000: "net", 2000: "net", 300: "app"}),
    # The innermost frame with an owner decides, and that is the library's own helper, until it is passed over.
    ("net libnet-*.so.8 weights", BUILT_IN),
    ("- libnet* allocate\nnet libnet* weights\ntmp libnet* scratch", {1000: "net", 2000: "tmp", 300: "app"}),
    ("- libnet* *", {1000: "app", 2000: "app", 300: "app"}),
    ("- libnet* *\nloads * load|nothing\nrest program ma?n", {1000: "loads", 2000: "rest", 300: "app"}),
    ("a libnet* *   host # for the host\nb libnet* *", {1000: "a", 2000: "a", 300: "app"}),
    ("a libnet* * device\nb libnet* * host\n", {1000: "b", 2000: "b", 300: "app"}),
    ("first libnet* *\nsecond libnet* *\r\n", {1000: "first", 2000: "first", 300: "app"}),
    ("x libnet*|program *", {1000: "x", 2000: "x", 300: "x"}),
    ("cudnn libnet* *", {1000: "cudnn", 2000: "cudnn", 300: "app"}),
]


# Rules about the code that has caused it; without Python all of it could be called own.
CLAIMS: List[Tuple[str, Dict[int, str]]] = [
    ("claim net lib\ncode own program main", {1000: "net", 2000: "net", 300: "app"}),
    ("claim net lib app\ncode own program load", {1000: "net", 2000: "lib", 300: "app"}),
    # The first rule that matches a frame decides, and the innermost frame of own code or of an import for the stack.
    ("claim net lib\ncode load program load\ncode own program main", {1000: "lib", 2000: "net", 300: "app"}),
    ("claim net lib\ncode library program m*\ncode own program main", BUILT_IN),
    ("claim net lib\ncode own libnet* weights\ncode import program main", {1000: "net", 2000: "package", 300: "app"}),
    ("claim net lib\nclaim - lib\ncode own program main", BUILT_IN),
    ("claim net lib\ncode main program main", {1000: "net", 2000: "net", 300: "app"}),
    ("claim net lib\ncode main program load\ncode library program main", BUILT_IN),
    # What has loaded code passes on what an import has asked for, and keeps the rest from own code.
    ("import net lib\ncode import program main", {1000: "net", 2000: "net", 300: "app"}),
    ("import net lib\ncode load libnet* *\ncode import program main", {1000: "net", 2000: "net", 300: "app"}),
    ("claim net lib\ncode load libnet* *\ncode own program main", BUILT_IN),
    (
        "import net lib\nclaim own lib\ncode own program load\ncode import program main",
        {1000: "own", 2000: "net", 300: "app"},
    ),
    ("import net lib\nimport - lib\ncode import program main", BUILT_IN),
]


@pytest.mark.parametrize("rules,expected", CASES + CLAIMS, ids=[rules for rules, _ in CASES + CLAIMS])
def test_rules_decide_whose_memory_it_is(rules: str, expected: Dict[int, str], tmp_path: Path) -> None:
    recording = recorded(tmp_path, rules)
    assert recording.returncode == 0, recording.stderr
    assert owners(recording.profile) == expected


# Libraries by the names that releases have for them, and whose their heap is by the built-in rules.
LIBRARIES = [
    ("libcudnn_ops_infer.so.8", "cudnn"),
    ("libcublasLt.so.11", "cublas"),
    ("libcufft.so.10", "cufft"),
    ("libcusparse.so.11", "cusparse"),
    ("libcusolver.so.11", "cusolver"),
    ("libcurand.so.10", "curand"),
    ("libnccl.so.2", "nccl"),
    ("libnvrtc-builtins.so.11.4", "nvrtc"),
    ("libnvvm.so.4", "nvrtc"),
    ("libnvinfer_plugin.so.8", "tensorrt"),
    ("libcutensor.so.2", "cutensor"),
    ("libcutensorMg.so.2", "cutensor"),
    ("libcudss.so.0", "cudss"),
    ("libnppif.so.12", "npp"),
    ("libnvjpeg.so.12", "nvjpeg"),
    ("libnvvpi.so.3", "vpi"),
    ("libnvbufsurface.so.1.0.0", "multimedia"),
    ("libnvbufsurftransform.so.1.0.0", "multimedia"),
    ("libgstnvvidconv.so", "multimedia"),
    ("libnvv4l2.so", "multimedia"),
    ("libgstvideo-1.0.so.0.2602.0", "multimedia"),
    ("libnvdsgst_infer.so", "multimedia"),
    ("librclcpp.so", "framework"),
    ("librmw_fastrtps_cpp.so", "framework"),
    ("libroscpp.so.4d", "framework"),
    ("libclass_loader.so.3d", "framework"),
    ("libnvargus_socketclient.so", "multimedia"),
    ("libtriton.so", "triton"),
    ("__triton_launcher.cpython-310-aarch64-linux-gnu.so", "triton"),
    ("libcudart-9335f6a2.so.11.0", "cudart"),
    ("libtorch_cpu.so", "framework"),
    ("libonnxruntime.so.1.15.1", "framework"),
    ("libtorchvision.so", "framework"),
    ("libllama.so.0", "framework"),
    ("libopencv_imgproc.so.410", "framework"),
    ("cv2.abi3.so", "framework"),
    ("libLLVM-15.so.1", "framework"),
    ("_dlib_pybind11.cpython-310-aarch64-linux-gnu.so", "framework"),
    ("hashtable.cpython-310-aarch64-linux-gnu.so", "package"),
    ("_rust.abi3.so", "package"),
    ("libcpython-helper.so.1", "lib"),
    ("libgomp.so.1", "lib"),
]


# Libraries that stand between a program and malloc or mmap: their callers own the memory.
PASSED_OVER = ["libucm.so.0", "libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2.0"]
NAMED = LIBRARIES + [(soname, "app") for soname in PASSED_OVER]


@pytest.mark.parametrize("number", range(len(NAMED)), ids=[soname for soname, _ in NAMED])
def test_a_library_has_an_owner_by_its_name(number: int) -> None:
    """One program calls them all, each with sizes of its own."""
    libraries = [
        library(f"#define weights weights_{n}\n#define scratch scratch_{n}\n{LIBRARY}", soname, "-fno-builtin")
        for n, (soname, _) in enumerate(NAMED)
    ]
    calls = "".join(
        f"{{ char *weights_{n}(size_t), *scratch_{n}(size_t); weights_{n}(1000 + {n}), scratch_{n}(2000 + {n}); }}\n"
        for n in range(len(NAMED))
    )
    program = f"#include <stdlib.h>\nint main(void) {{\n{calls}return 0; }}"
    found = owners(harness.recorded([compile_c(program, "-fno-builtin", *linked_to(*libraries))]).profile)
    assert len(found) == 2 * len(NAMED)
    assert found[1000 + number] == found[2000 + number] == NAMED[number][1]


# Libraries whose functions are not all one owner's, or that work on behalf of what calls them: libraries with their
# functions, outermost first, each of which calls the next, and the last allocates. Whose is it?
LOADS = "_ZN16llama_model_base12load_tensorsER18llama_model_loader"  # llama_model_base::load_tensors
CACHE = "_ZN14llama_kv_cacheC1ERK11llama_model"  # llama_kv_cache::llama_kv_cache
RESERVE = "_ZN13llama_context13sched_reserveEv"  # llama_context::sched_reserve
IMAGE = "_ZN2cv10fastMallocEm"  # cv::fastMalloc
DEVICE = "_ZN2cv3ocl7ContextC1Ev"  # cv::ocl::Context::Context
TREE = "_ZN7xgboost4tree4growEv"  # xgboost::tree::grow
CALLS: List[Tuple[List[Tuple[str, str]], str]] = [
    ([("libggml-base.so.0", "ggml_aligned_malloc")], "app"),
    ([("libllama.so.0", LOADS), ("libggml-base.so.0", "ggml_aligned_malloc")], "model"),
    ([("libllama.so.0", CACHE), ("libggml-base.so.0", "ggml_aligned_malloc")], "kv-cache"),
    ([("libllama.so.0", RESERVE), ("libggml-cuda.so", "ggml_backend_cuda_buffer")], "compute"),
    ([("libllama.so.0", "llama_decode"), ("libggml-base.so.0", "ggml_aligned_malloc")], "framework"),
    # A module of Node.js, a function of it that is not exported, and one whose name decides.
    ([("llama.node", CACHE), ("part.node", "allocated"), ("ggml.node", "ggml_malloc")], "kv-cache"),
    ([("index.node", "parsed")], "app"),
    ([("libwhisper.so.1", "whisper_model_load"), ("libggml.so.0", "ggml_init")], "model"),
    ([("libopencv_core.so.410", IMAGE)], "data"),
    ([("libopencv_core.so.410", IMAGE), ("libopencv_core.so.411", DEVICE)], "framework"),
    ([("libxgboost.so", "XGDMatrixCreateFromDense"), ("libxgboost.so.3", TREE)], "data"),
    ([("libxgboost.so", "XGBoosterUpdateOneIter"), ("libxgboost.so.3", TREE)], "framework"),
    ([("libxgboost.so", "XGBoosterLoadModel"), ("libxgboost.so.3", TREE)], "model"),
]
CALLER = """
#include <stddef.h>
char *called(size_t) __asm__("{called}");
char *function(size_t) __asm__("{function}");
char *function(size_t n) {{ char *p = called(n); p[0] = 1; return p; }}
"""


@pytest.mark.parametrize("calls, owner", CALLS)
def test_who_calls_a_library_or_which_function_decides(calls: List[Tuple[str, str]], owner: str) -> None:
    called, libraries = "malloc", []  # type: str, List[Path]
    for soname, function in reversed(calls):
        source = CALLER.format(called=called, function=function)
        libraries.append(library(source, soname, "-fno-builtin", *linked_to(*libraries[-1:])))
        called = function
    program = CALLER.format(called=called, function="asked") + "int main(void) { return function(5000)[0] != 1; }"
    recording = record([compile_c(program, "-fno-builtin", *linked_to(*reversed(libraries)))])
    assert recording.returncode == 0, recording.stderr
    assert owners(recording.profile) == {5000: owner}


MAPS = """
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
int main(int argc, char **argv)
{
    int sum = 0;
    for (int i = 1; i < argc; i++) {
        char *file = mmap(NULL, 3 << 20, PROT_READ, MAP_PRIVATE, open(argv[i], O_RDONLY), 0);
        for (int at = 0; at < 3 << 20; at += 4096)
            sum += file[at];
    }
    return malloc(8 << 20) ? sum : 1; // the last sample, which sees every file, is the peak whenever others were
}
"""


def test_a_mapped_file_of_weights_is_a_model(tmp_path: Path) -> None:
    whose = {"llama.gguf": "model", "net.safetensors": "model", "net.onnx": "model", "net.engine": "model"}
    whose.update({"net.pth": "model", "net.bin": "app", "table.csv": "app", "onnx": "app"})
    for name in whose:
        (tmp_path / name).write_bytes(bytes(3 << 20))
    recording = record([compile_c(MAPS, "-fno-builtin"), *map(tmp_path.joinpath, whose)], ["--pages=yes"], status=0)
    profile = recording.profile
    found = {}
    for account_id, (n_bytes, _) in profile.peak_composition("total").items():
        account = profile.accounts[account_id]
        if account.kind == "file" and account.node:
            name = Path(profile.frame(next(iter(profile.stack(account.node)))).object).name
            found[name] = (account.owner, n_bytes)
    assert {name: found[name] for name in whose} == {name: (owner, 3 << 20) for name, owner in whose.items()}
    assert profile.group_of["model"] == "yours"


def test_overhead_belongs_to_the_blocks_owner(tmp_path: Path) -> None:
    profile = recorded(tmp_path, "net libnet* *").profile
    overhead = [account for account in map(profile.accounts.__getitem__, profile.counts()) if account.kind != "heap"]
    assert {account.owner for account in overhead} >= {"net", "app"}


def test_owners_have_groups(tmp_path: Path) -> None:
    profile = recorded(tmp_path, "group yours net\ngroup cached app\nnet libnet* *\nother program main").profile
    assert profile.group_of["net"] == "yours"
    assert profile.group_of["app"] == "cached"
    assert profile.group_of["other"] == "libraries"  # by default
    assert profile.group_of["cudnn"] == "libraries"


TEXT = """
#include <string>
int main(int argc, char **argv)
{
    std::string text(argv[0]);
    text.resize(100000, 'x');
    return text.size() != 100000;
}
"""


def test_what_the_cxx_library_allocates_is_its_callers() -> None:
    profile = record([compile_c(TEXT, "-O0", suffix=".cc")]).profile
    found = [
        (profile.accounts[account_id].owner, functions(profile, profile.accounts[account_id].node))
        for account_id, counts in profile.counts().items()
        if profile.accounts[account_id].kind == "heap" and counts.bytes == 100001
    ]
    ((owner, stack),) = found
    assert owner == "app" and any("std::" in function for function in stack[: stack.index("main")])


# What is no rule, in which line (0: in some), and a part of what is said.
ERRORS: List[Tuple[str, int, str]] = [
    ("net", 1, "OWNER OBJECT FUNCTION [host|device|driver]"),
    ("# fine\nnet libnet*", 2, "OWNER OBJECT FUNCTION [host|device|driver]"),
    ("net libnet* * host too", 1, "OWNER OBJECT FUNCTION [host|device|driver]"),
    ("net libnet* * everywhere", 1, "host, device or driver"),
    ("role scratch libnet*", 1, "role ROLE OBJECT FUNCTION [survivors]"),
    ("role scratch libnet* * forever", 1, "role ROLE OBJECT FUNCTION [survivors]"),
    ("n.e.t libnet* *", 1, "letters, digits"),
    ("a libnet* *\n\n\nb! libnet* *\n", 4, "letters, digits"),
    ("code own libnet*", 1, "code own|main|library|load|import OBJECT FUNCTION"),
    ("code mine libnet* *", 1, "own, main, library, load or import"),
    ("claim net", 1, "claim CLAIMANT OWNER"),
    ("claim net l!b", 1, "letters, digits"),
    ("import net", 1, "import CLAIMANT OWNER"),
    ("\n".join(f"claim net owner{i}" for i in range(300)), 0, "fewer names"),
    ("group yours", 1, "group GROUP OWNER"),
    ("group mine net", 1, "yours, cached, libraries or runtime"),
    ("group yours n/t", 1, "letters, digits"),
    ("group yours " + "net " * 40, 1, "split it"),
    ("\n".join(f"owner{i} * *" for i in range(300)), 0, "fewer names"),
    ("n" * 65 + " libnet* *", 1, "64 at most"),
    ("n" * 400000 + " libnet* *", 1, "64 at most"),
    ("group yours " + "n" * 40000, 1, "64 at most"),
    ("role " + "n" * 40000 + " libnet* *", 1, "64 at most"),
]


@pytest.mark.parametrize(
    "rules,line,mend", ERRORS, ids=[f"{mend}{line}-{i}" for i, (_, line, mend) in enumerate(ERRORS)]
)
def test_a_mistake_is_told_with_its_place_and_its_mend(rules: str, line: int, mend: str, tmp_path: Path) -> None:
    recording = recorded(tmp_path, rules)
    assert recording.returncode == 2
    (message,) = [text for text in recording.stderr.splitlines() if "jmassif: " in text]
    assert mend in message
    assert re.search(rf"my\.rules:{line or '[0-9]+'}: ", message)
    assert not recording.traces


LONG = "#include <stdlib.h>\nint NAME(void) { return *(char *)calloc(700, 1); }\nint main(void) { return NAME(); }"


@pytest.mark.parametrize("end, owner", [("b", "app"), ("a", "own"), ("?", "own"), ("\\\\*", "app")])
def test_a_pattern_of_many_stars_takes_no_longer(end: str, owner: str, tmp_path: Path) -> None:
    """To try all ways to give the stars their parts of the name would take years."""
    (tmp_path / "my.rules").write_text(f"own * {'*a' * 40}*{end}\n")
    compiled = compile_c(LONG.replace("NAME", "a" * 200), "-fno-builtin")
    recording = record([compiled], [f"--owners={tmp_path}/my.rules"], timeout=60, status=0)
    heap = [account.owner for account in recording.profile.accounts if account.kind == "heap"]
    assert heap == [owner]


def test_a_long_name_and_a_long_pattern_are_taken(tmp_path: Path) -> None:
    pattern = "|".join(["l" * 255] * 50 + ["program"])
    recording = recorded(tmp_path, f"{'n' * 64} {pattern} *")
    assert recording.returncode == 0, recording.stderr
    assert {account.owner for account in recording.profile.accounts if account} >= {"n" * 64}


@pytest.mark.parametrize("path", ["no/such/file", "."])
def test_a_file_that_cannot_be_read_is_told(path: str, tmp_path: Path) -> None:
    recording = record(["/bin/true"], [f"--owners={tmp_path}/{path}"])
    assert recording.returncode == 2
    assert recording.stderr.count("cannot read the file") == 1
    assert f"{tmp_path}/{path}" in recording.stderr
    assert not recording.traces


# As PyTorch calls it, where the last of the rules that are built in knows it.
COPIES = """
#include <stdlib.h>
void *copies(void) __asm__("_ZN2at4_ops8_to_copy4callEv");
void *copies(void) { return calloc(700, 1); }
"""
COPIED = 'void *copies(void) __asm__("_ZN2at4_ops8_to_copy4callEv");\nint main(void) { return *(char *)copies(); }'


@pytest.mark.parametrize("n", [1, 243, 244, 249, 250])
def test_as_many_role_rules_as_there_may_be_leave_those_built_in_what_they_are(n: int, tmp_path: Path) -> None:
    rules = [f"role r{i} none none{i}" for i in range(n)]
    (tmp_path / "my.rules").write_text("\n".join(["tensor libtorch* at::_ops::*", *rules]))
    lib = library(COPIES, "libtorch_copies.so", "-fno-builtin")
    recording = record([compile_c(COPIED, *linked_to(lib))], [f"--owners={tmp_path}/my.rules"], status=0)
    profile = recording.profile
    heap = [number for number, account in enumerate(profile.accounts) if account.kind == "heap"]
    assert [profile.role(number) for number in heap] == ["input"]


ARRAYS = """
import ctypes, sys
runtime = ctypes.CDLL(sys.argv[1])
def device_array(n):
    pointer = ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(n)) == 0
"""
ASKS = "import numba.cuda.driver\nnumba.cuda.driver.device_array(3 << 20)\n"


# A stand-in for numba.cuda: a package of that name; the real one is in tests/field.
@pytest.mark.parametrize("script,owner", [(ASKS, "data"), (f"{ARRAYS}device_array(3 << 20)\n", "app")])
def test_device_memory_by_ctypes_is_the_scripts_or_its_packages(
    script: str, owner: str, tmp_path: Path, sim: Path
) -> None:
    package = tmp_path / "site-packages" / "numba" / "cuda"
    package.mkdir(parents=True)
    for directory in (package, package.parent):
        (directory / "__init__.py").write_text("")
    (package / "driver.py").write_text(ARRAYS)
    (tmp_path / "script.py").write_text(script)
    command: List[harness.Argument] = [harness.PYTHON, tmp_path / "script.py", sim / "libcudart.so.12"]
    profile = record(command, env={"PYTHONPATH": f"{tmp_path}/site-packages"}, status=0).profile
    held = profile.peak_composition("device")
    accounts = [profile.accounts[number] for number, (n_bytes, _) in held.items() if n_bytes >= 3 << 20]
    assert [account.owner for account in accounts if account.kind == "device"] == [owner]
