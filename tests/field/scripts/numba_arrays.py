# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes arrays of numba.cuda on the device, pinned and managed, and frees none. Prints the bytes of each by line, as JSON."""

import inspect
import json
from typing import Any, Dict, List

import numpy as np
from numba import cuda

kept: List[Any] = []
said: Dict[str, int] = {}


def keep(array: Any) -> None:
    caller = inspect.stack()[1]
    said[str(caller.lineno)] = said.get(str(caller.lineno), 0) + array.size * array.dtype.itemsize
    kept.append(array)


keep(cuda.device_array((2048, 1024), np.float32))
for _ in range(3):
    keep(cuda.to_device(np.ones(1 << 20)))
keep(cuda.pinned_array(1 << 19, np.float64))
keep(cuda.managed_array(1 << 20, np.int32))
keep(cuda.device_array_like(kept[0]))
total = int(kept[1].copy_to_host().sum())
print(json.dumps({"lines": said, "sum": total}))
