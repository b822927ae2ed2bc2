# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Statements over many lines: a frame's line is that of the call, not of the statement."""

from witness import here

# fmt: off


def make(*anything, **keywords):
    return bytearray(here())


def statements():
    a = {
        "one": make(),
        "two": [
            make(),
            make(
                make(),
                make(),
            ),
        ],
    }
    b = (
        make()
        and make()
        and [
            make(),
        ]
    )
    make(
        1,
        2,
        key=make(),
    )
    c = (
        make()
        if make()
        else None
    )
    d = f"""
        {len(make())}
        {len(make())}
    """
    del (
        a["two"],
        b[0],
    )
    assert len(make()) < len(
        make()
    ), "never"
    return (
        make(),
        c,
        d,
    )


def blocks():
    with open(
        "/dev/null"
    ) as file:
        make(file)
    try:
        make()
        raise ValueError(
            make(),
        )
    except (
        KeyError,
        ValueError,
    ):
        make()
    else:
        make()
    finally:
        make()
    for _ in make()[
        :1
    ]:
        make()
    else:
        make()
    while make():
        make()
        break
    if not make():
        pass
    elif make():
        make()
    make(); make()


def backwards(n):
    for i in range(n):
        if i:
            make()
        make()


def decorating(*anything):
    return make


@make
@decorating(
    make(),
    make(),
)
def decorated(
    default=make(),
    other=make(),
):
    pass


# Distances that take more than one byte in a table of lines.
FAR_APART = f"""
def far_apart():
    make(){chr(10) * 200}
    make(){chr(10) * 200}
    return [make(),{chr(10) * 200}
            make(), make()]
far_apart()
"""


def long_line():
    return make(), "                                                                                                 ", make()


statements()
blocks()
backwards(3)
exec(FAR_APART)
long_line()
