# SPDX-License-Identifier: GPL-2.0-or-later
"""A loader of batches as training scripts have them: named threads that fetch, each from a queue, and one that all put into.

Prints, by thread, what `fetch` has asked of malloc in all.
"""

import ctypes
import queue
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Dict, Optional

malloc = ctypes.CDLL(None).malloc
malloc.argtypes, malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
asked: Dict[str, int] = {}


def fetch(n_bytes: int) -> int:
    name = threading.current_thread().name
    asked[name] = asked.get(name, 0) + n_bytes
    address: int = malloc(n_bytes)
    return address


def load(jobs: "queue.Queue[Optional[int]]", batches: "queue.Queue[int]") -> None:
    for index in iter(jobs.get, None):
        batches.put(fetch(10000 + index))


def warm_up_then_load() -> None:
    before = threading.current_thread().name
    fetch(777)
    threading.current_thread().name = "late"
    asked["late"] = asked.pop(before)
    fetch(500000)  # nothing is allocated between this and the name


def fetch_when_all_run(n_bytes: int) -> int:
    all_run.wait()
    return fetch(n_bytes)


batches: "queue.Queue[int]" = queue.Queue()
all_run = threading.Barrier(2)
names = ["loader-0", "loader-1", "loader-2", "Lader-Ümlaut"]
jobs: "Dict[str, queue.Queue[Optional[int]]]" = {name: queue.Queue() for name in names}
workers = [threading.Thread(target=load, args=(jobs[name], batches), name=name) for name in names]
workers.append(threading.Thread(target=warm_up_then_load))
for worker in workers:
    worker.start()
for index in range(40):
    jobs[names[index % len(names)]].put(index)
for _ in range(40):
    batches.get()
for name in names:
    jobs[name].put(None)
for worker in workers:
    worker.join()
with ThreadPoolExecutor(2, thread_name_prefix="pool") as pool:
    list(pool.map(fetch_when_all_run, (20000, 30000)))
fetch(123456)
sys.stdout.buffer.write("".join(f"{name}\t{n}\n" for name, n in asked.items()).encode("utf-8"))
