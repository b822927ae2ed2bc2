# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs a program below the recorder: the command jmassif or, where that is not installed, Valgrind."""

import os
import shutil
from typing import List


class LaunchError(Exception):
    """There is nothing to run it with. The message says what is missing, without a subject."""


def launcher() -> List[str]:
    """The words before the recorder's options. $VALGRIND is another Valgrind, $VALGRIND_LIB one whose tools lie elsewhere.

    Raises LaunchError.
    """
    asked = os.environ.get("VALGRIND")
    if not asked:
        own = shutil.which("jmassif")
        if own and not os.environ.get("VALGRIND_LIB"):
            return [own]
    valgrind = shutil.which(asked or "valgrind")
    if not valgrind:
        raise LaunchError("needs Valgrind with the tool jmassif: neither jmassif nor valgrind is on PATH")
    return [valgrind, "--tool=jmassif"]
