# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Memory of other places: a captured graph's private pool, side streams, a thread of its own."""

import threading

import torch

from figures import tell


def main() -> None:
    torch.cuda.init()
    tell("start")
    fixed = torch.empty(1 << 20, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = fixed + 1
        made = made * 2
    tell("captured")
    graph.replay()
    tell("replayed")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        aside = torch.empty(3 << 20, device="cuda")
    aside.record_stream(torch.cuda.current_stream())
    tell("side stream")
    del aside
    tell("side stream freed")

    held = []
    thread = threading.Thread(target=lambda: held.append(torch.empty(5 << 20, device="cuda")))
    thread.start()
    thread.join()
    tell("thread")
    del held[:]
    tell("thread freed")
    del made, graph
    torch.cuda.empty_cache()
    tell("graph gone")
    del fixed
    torch.cuda.empty_cache()
    tell("empty")


main()
