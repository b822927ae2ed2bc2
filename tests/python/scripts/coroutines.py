# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Coroutines, awaited directly and as tasks of an event loop."""

import asyncio

from witness import here

held = []


async def leaf(n):
    held.append(bytearray(here()))
    await asyncio.sleep(0)
    held.append(bytearray(here()))
    return n


async def middle(n):
    return (
        await leaf(n),
        await leaf(n + 1),
    )


class Awaitable:
    def __await__(self):
        held.append(bytearray(here()))
        yield from leaf(1).__await__()


class Context:
    async def __aenter__(self):
        held.append(bytearray(here()))

    async def __aexit__(self, *exception):
        held.append(bytearray(here()))


async def ticks(n):
    for i in range(n):
        held.append(bytearray(here()))
        yield i
        await asyncio.sleep(0)


def callback():
    held.append(bytearray(here()))


async def main():
    held.append(bytearray(here()))
    await middle(1)
    await Awaitable()
    async with Context():
        held.append(bytearray(here()))
    async for _ in ticks(2):
        held.append(bytearray(here()))
    held.append([bytearray(here()) async for _ in ticks(1)])
    await asyncio.gather(leaf(1), middle(2))
    task = asyncio.ensure_future(leaf(3))
    asyncio.get_event_loop().call_soon(callback)
    await task
    await asyncio.get_event_loop().run_in_executor(None, callback)


loop = asyncio.new_event_loop()
loop.run_until_complete(main())
loop.close()
