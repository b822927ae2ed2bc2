# SPDX-License-Identifier: GPL-2.0-or-later
"""The wheel: no network, and nothing but setuptools and wheel.

`pip install .` makes one of the reporter alone, for every machine. `make wheel` has built the native recorder, and names its directory
in $JMASSIF_RECORDER and the machine in $JMASSIF_PLATFORM ("linux_aarch64"): that wheel records, too.
"""

import os
import re
import shutil
from typing import Tuple

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

PACKAGE = os.path.join("reporter", "jmassif")
# The directory of a build tree, which git ignores: setuptools would write beside the sources.
MADE = os.path.join("build", "wheel")

with open(os.path.join(PACKAGE, "version.py"), encoding="utf-8") as stream:
    found = re.search(r'^__version__ = "(.+)"$', stream.read(), re.MULTILINE)
assert found

inside = [(os.path.relpath(path, PACKAGE), names) for path, _, names in os.walk(PACKAGE)]
packages = sorted(os.path.normpath(os.path.join("jmassif", path)) for path, names in inside if "__init__.py" in names)
# What is no module: the mark of a typed package, and what reports are made of.
other_files = [
    os.path.normpath(os.path.join(path, name))
    for path, names in inside
    for name in names
    if not name.endswith((".py", ".pyc"))
]

recorder, platform = os.environ.get("JMASSIF_RECORDER", ""), os.environ.get("JMASSIF_PLATFORM", "")


class BuildWithRecorder(build_py):
    def run(self) -> None:
        super().run()
        if recorder:
            shutil.copytree(recorder, os.path.join(self.build_lib, "jmassif", "recorder"))


class WithRecorder(Distribution):
    def has_ext_modules(self) -> bool:  # not for every machine
        return bool(recorder)


class PlatformWheel(bdist_wheel):
    """For one processor, and every Python: the recorder is no extension module."""

    def get_tag(self) -> Tuple[str, str, str]:
        return ("py3", "none", platform if recorder else "any")


os.makedirs(MADE, exist_ok=True)
setup(
    name="jmassif",
    version=found.group(1),
    description="Heap and CUDA memory profiler for NVIDIA Jetson",
    license="GPL-2.0-or-later",
    license_files=["COPYING", "COPYING.BSD"],
    python_requires=">=3.6",
    extras_require={
        "fleet": ["sqlalchemy>=1.4", "pandas>=1.1", "scipy>=1.7"],
        "fleet-cluster": ["distributed>=2022.12"],
    },
    package_dir={"": "reporter"},
    packages=[path.replace(os.sep, ".") for path in packages],
    package_data={"jmassif": sorted(other_files)},
    entry_points={
        "console_scripts": [
            "jm_diff = jmassif.cli.main:jm_diff",
            "jm_print = jmassif.cli.main:jm_print",
            "jmassif = jmassif.cli.main:run",
        ],
        "pytest11": ["jmassif = jmassif.pytest_plugin"],
    },
    distclass=WithRecorder,
    cmdclass={"build_py": BuildWithRecorder, "bdist_wheel": PlatformWheel},
    options={"build": {"build_base": MADE}, "egg_info": {"egg_base": MADE}},
    zip_safe=False,
)
