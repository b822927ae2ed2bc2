# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Classes that are named and kept as PyTorch's are:  tensors.py LIBRARY HEAD PLACE

LIBRARY is tensors.c; HEAD is how many words come first in a C++ object, PLACE at which byte a Python tensor has its own. At
each mark it prints the bytes of each role by its own books. The class of tensors is made by the C API, because a script's
class cannot have a module in its C name.
"""

import collections
import ctypes
import gc
import json
import sys

library = ctypes.CDLL(sys.argv[1])
HEAD, PLACE = int(sys.argv[2]), int(sys.argv[3])
library.tensor.restype = ctypes.c_void_p
library.tensor.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_int]


class Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basic_size", ctypes.c_int),
        ("item_size", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(Slot)),
    ]


slots = (Slot * 1)(Slot(0, None))
spec = Spec(b"torch._C." + (b"TensorBase" if HEAD == 2 else b"_TensorBase"), 32, 0, 1 << 10, slots)  # a base
ctypes.pythonapi.PyType_FromSpec.restype = ctypes.py_object
Base = ctypes.pythonapi.PyType_FromSpec(ctypes.byref(spec))


class Tensor(Base):
    pass


class Parameter(Tensor):
    __module__ = "torch.nn.parameter"


class Module:
    __module__ = "torch.nn.modules.module"

    def __init__(self):
        self.training = True
        self._parameters = {}
        self._buffers = collections.OrderedDict()


class Optimizer:
    __module__ = "torch.optim.optimizer"


class Mixin:
    def __init__(self):
        super().__init__()


class Mine(Mixin, Module):
    pass


class Elsewhere:
    """Not PyTorch's, for all its name."""

    def __init__(self):
        self._parameters = {}
        self._buffers = {}


Elsewhere.__name__ = "Module"

sizes = {}  # by tensor's id; all live until the end
everything = []
next_size = 10000


def make(kind=Tensor, gradient=None, wants=False):
    global next_size
    next_size += 1000
    made = kind()
    impl = library.tensor(next_size, HEAD, gradient and impl_of(gradient), wants)
    ctypes.c_void_p.from_address(id(made) + PLACE).value = impl
    sizes[id(made)] = next_size
    everything.append(made)
    return made


def impl_of(made):
    return ctypes.c_void_p.from_address(id(made) + PLACE).value


def tell(mark, parameter=(), gradient=(), optimizer=()):
    total = {
        name: sum(sizes[id(made)] for made in tensors)
        for name, tensors in (("parameter", parameter), ("gradient", gradient), ("optimizer", optimizer))
    }
    total["other"] = sum(sizes.values()) - sum(total.values())
    print(json.dumps({"mark": mark, **total}))
    library.tell(mark.encode())


plain = make()
tell("a tensor")
parameter = make(Parameter)
leaf = make(wants=True)
tell("a parameter and a leaf", [parameter, leaf])
first = make()
trained = make(Parameter, gradient=first)
tell("a gradient", [parameter, leaf, trained], [first])

modules = [Module(), Mine(), Mine()]
buffers = [make() for _ in range(60)]
for i in range(50):  # more attributes than objects of a class share names for
    setattr(modules[1], "attribute" + str(i), i)
vars(modules[2])["more"] = 1  # its dictionary is made
for module in modules:
    for i in range(20):
        module._buffers["buffer" + str(i)] = buffers.pop()
registered = everything[-60:]
unregistered = registered.pop()  # the first module's first: the last one made
del modules[0]._buffers["buffer0"]
late = make()
modules[1]._parameters["late"] = late
modules[2]._parameters["nothing"] = None
elsewhere = Elsewhere()
elsewhere._buffers["none"] = make()
parameters = [parameter, leaf, trained, late] + registered
tell("modules", parameters, [first])

optimizer = Optimizer()
given = make()
optimizer.param_groups = [{"lr": 0.1, "params": [given, trained]}]
optimizer.state = collections.defaultdict(dict)
kept = [make() for _ in range(4)]
optimizer.state[given] = {"step": 3, "mean": kept[0], "history": [kept[1]]}
optimizer.state[trained] = {"step": kept[2], "pair": (kept[3], None)}
parameters.append(given)
tell("an optimizer", parameters, [first], kept)
gc.freeze() if hasattr(gc, "freeze") else None
gc.collect()
tell("collected", parameters, [first], kept)
gc.unfreeze() if hasattr(gc, "unfreeze") else None
modules[0]._buffers.clear()
gone = registered[-19:]
del optimizer.state[trained]
parameters = [made for made in parameters if made not in gone]
tell("let go", parameters, [first], kept[:2])
for mark in ("come", "come and collected", "nothing came"):  # the old ones are known from the walk before
    if mark != "nothing came":
        parameters.append(make(Parameter))
    if mark == "come and collected":
        gc.collect()
    tell(mark, parameters, [first], kept[:2])
