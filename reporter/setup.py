# SPDX-License-Identifier: GPL-2.0-or-later
"""The wheel of the reporter, built by `make wheel`: no network, and nothing but setuptools and wheel."""

import os
import re

from setuptools import setup

with open(os.path.join("jmassif", "version.py"), encoding="utf-8") as stream:
    found = re.search(r'^__version__ = "(.+)"$', stream.read(), re.MULTILINE)
assert found

packages = sorted(path.replace(os.sep, ".") for path, _, names in os.walk("jmassif") if "__init__.py" in names)
# What is no module: the mark of a typed package, and what reports are made of.
other_files = [
    os.path.relpath(os.path.join(path, name), "jmassif")
    for path, _, names in os.walk("jmassif")
    for name in names
    if not name.endswith((".py", ".pyc"))
]

setup(
    name="jmassif",
    version=found.group(1),
    description="Where the memory of a program on an NVIDIA Jetson went: reads what valgrind --tool=jmassif recorded",
    license="GPL-2.0-or-later",
    python_requires=">=3.6",
    extras_require={"fleet": ["sqlalchemy>=1.4", "pandas>=1.1", "scipy>=1.7"]},
    packages=packages,
    package_data={"jmassif": other_files},
    entry_points={
        "console_scripts": [
            "jm_diff = jmassif.cli.main:jm_diff",
            "jm_print = jmassif.cli.main:jm_print",
            "jmassif = jmassif.cli.main:run",
        ],
        "pytest11": ["jmassif = jmassif.pytest_plugin"],
    },
    zip_safe=False,
)
