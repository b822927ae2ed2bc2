# SPDX-License-Identifier: GPL-2.0-or-later
"""Products of matrices by NumPy: so many of 256 by 256 numbers, on one thread. Prints a sum of the last one."""

import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

a = np.arange(256 * 256, dtype=np.float32).reshape(256, 256) % 7
b = a.T.copy()
c = a
for _ in range(int(sys.argv[1])):
    c = np.dot(a, b)
print(c.sum(dtype=np.float64))
