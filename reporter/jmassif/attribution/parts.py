# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of a program that is composed of others' code: elements of GStreamer, nodes of ROS, phases of TensorRT.

The innermost frame that a row of `RULES` matches decides. Memory of the host and of the device has the same stacks.

- A node's factory names its class, which is a part wherever one of its functions runs, as in a callback.
- An element's buffers come from functions of GStreamer's, which do not name it. But a streaming thread has the name of the
  pad that feeds it, "queue0:src", and each push over a pad is a frame: "videoconvertscale (3 after queue0)" is the third
  element downstream, of the plug-in that has allocated at that place. It takes a trace with threads.
"""

import re
from array import array
from typing import Dict, List, NamedTuple, Optional, Set, Tuple

from jmassif.attribution.names import describe
from jmassif.model.records import Frame
from jmassif.model.run import Profile
from jmassif.units import printable

NO_PART = "(no part)"
_PLUGIN, _NODE, _PUSH, _QUERY = "plug-in ", "node ", "push", "query"
_AT = " at "  # and the caller: one of several engines


class Rule(NamedTuple):
    part: str  # "\\\\1" is the group of either pattern
    objects: str  # beginnings of the object file's path
    functions: str  # beginnings of the demangled name


RULES = (
    Rule(_PLUGIN + r"\1", r".*/gstreamer-1\.0/libgst([^/]+?)\.so", ""),  # NVIDIA's are libgstnv*
    Rule(_PLUGIN + r"\1", r".*/gst-plugins/lib(?:nvds)?gst_?([^/]+?)\.so", ""),  # DeepStream's
    Rule(_PUSH, r".*/libgstreamer-1\.0\.so", r"gst_pad_push(?:_list|_event)?$"),
    Rule(_QUERY, r".*/libgstreamer-1\.0\.so", r"gst_pad_(?:peer_)?query|gst_pad_get_allowed_caps$"),  # goes both ways
    Rule(_NODE + r"\1", "", r"(?:.* )?rclcpp_components::NodeFactoryTemplate<([\w:]+)>::create_node_instance"),
    Rule(_NODE + r"\1", "", r"class_loader::.*MetaObject<([\w:]+), nodelet::Nodelet>::create"),  # of ROS 1
    # Inline functions of NvInfer.h: whole names where they are compiled, bare ones where they are inlined and have lines.
    Rule(f"TensorRT engine{_AT}", "", r"(?:nvinfer1::IRuntime::)?deserializeCudaEngine\b"),
    Rule(f"TensorRT context{_AT}", "", r"(?:nvinfer1::ICudaEngine::)?createExecutionContext(?:WithoutDeviceMemory)?\b"),
    Rule(f"TensorRT run{_AT}", "", r"(?:nvinfer1::IExecutionContext::)?(?:enqueue|enqueueV\d|executeV\d)\b"),
    Rule(f"TensorRT builder{_AT}", "", r"(?:nvinfer1::IBuilder::)?(?:buildSerializedNetwork|buildEngineWithConfig)\b"),
)
# A trace without any of these words has no part: looking for them is a hundred times as fast as trying each frame.
_WORDS = [
    *("/gstreamer-1.0/", "gst_pad_push", "/gst-plugins/", "NodeFactoryTemplate<", "nodelet::Nodelet>"),
    *("deserializeCudaEngine", "createExecutionContext", "buildSerializedNetwork", "buildEngineWithConfig"),
]
_PATTERNS = [(rule.part, re.compile(rule.objects), re.compile(rule.functions)) for rule in RULES]


def _part_of(frame: Frame) -> Optional[str]:
    for part, objects, functions in _PATTERNS:
        path, function = objects.match(frame.object), functions.match(frame.function)
        if path and function:
            return (path if path.re.groups else function).expand(part)
    return None


def _parts_of_frames(profile: Profile) -> Dict[int, str]:
    texts = "\n".join(profile.strings.values())
    if not any(word in texts for word in _WORDS):
        return {}
    found: Dict[int, str] = {}
    for id_, fields in profile.frames.items():
        part = _part_of(profile.frame(id_)) if fields[0] in "nim" else None
        if part:
            found[id_] = part
    classes = {part[len(_NODE) :] for part in found.values() if part.startswith(_NODE)}
    # Also as an argument of a template that calls it: a function of its own may be inlined.
    of_node = re.compile(rf"(?<![\w:])({'|'.join(map(re.escape, classes))})::")
    for id_, fields in profile.frames.items() if classes else ():
        function = of_node.search(profile.strings[fields[1]])
        if function and id_ not in found:
            found[id_] = _NODE + function.group(1)
    return found


class _Place(NamedTuple):
    """A place in a pipeline, or a part."""

    feeder: str  # the element that feeds the streaming thread; "" in other threads
    n_pushes: int
    part: str


class Parts:
    """The parts of one run: `names`, and the number of its name by account, -1 if it is of none."""

    def __init__(self, profile: Profile) -> None:
        found = _parts_of_frames(profile)
        has_pipeline = any(part in (_PUSH, _QUERY) or part.startswith(_PLUGIN) for part in found.values())
        places = [_Place("", 0, "")]
        number_of = {places[0]: 0}
        by_node = array("I", [0])
        for parent, frame in zip(profile.node_parent[1:], profile.node_frame[1:]) if found else ():
            number = by_node[parent]
            part = found.get(frame)
            if part == _PUSH:
                place = places[number]._replace(n_pushes=places[number].n_pushes + 1, part="")
            elif part == _QUERY:
                place = places[0]
            elif part:
                if part.endswith(_AT):
                    part = part + describe(profile.frame(profile.node_frame[parent])) if parent else part[: -len(_AT)]
                place = places[number]._replace(part=part)
            elif has_pipeline and not parent and profile.frames[frame][0] == "t":
                feeder, colon, _ = profile.thread(profile.frames[frame][4]).partition(":")
                place = _Place(feeder if colon else "", 0, "")
            else:
                place = places[number]
            if place not in number_of:
                number_of[place] = len(places)
                places.append(place)
            by_node.append(number_of[place])
        self._accounts = array("I", map(by_node.__getitem__, profile.accounts.nodes)) if found else None
        self._names = _names(places)
        self.has_any = any(name != NO_PART for name in self._names)

    def name(self, account: int) -> str:
        return self._names[self._accounts[account]] if self._accounts else NO_PART


def _names(places: List[_Place]) -> List[str]:
    plugins: Dict[Tuple[str, int], Set[str]] = {}
    for feeder, n_pushes, part in places:
        if part.startswith(_PLUGIN):
            plugins.setdefault((feeder, n_pushes), set()).add(part[len(_PLUGIN) :])

    def name(place: _Place) -> str:
        feeder, n_pushes, part = place
        if part and not part.startswith(_PLUGIN):
            return printable(part)
        if feeder and not n_pushes:
            return printable(feeder)
        if n_pushes:
            known = [part[len(_PLUGIN) :]] if part else sorted(plugins.get((feeder, n_pushes), ()))
            return printable(f"{' or '.join(known) or 'element'} ({n_pushes} after {feeder or 'a source'})")
        return printable(part) or NO_PART

    return [name(place) for place in places]
