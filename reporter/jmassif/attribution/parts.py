# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of a program that is composed of others' code: elements of GStreamer, nodes of ROS, phases of TensorRT.

From the allocation outwards, the first frame that a row of `RULES` matches decides. A row without a part ends the search:
frames further out are of another part, which has handed its buffer on. A class of which a node was made is a part wherever
one of its functions runs, as in a callback. Memory of the host and of the device has the same stacks.
"""

import re
from array import array
from typing import Dict, List, NamedTuple, Optional

from jmassif.attribution.names import describe
from jmassif.model.records import Frame
from jmassif.model.run import Profile
from jmassif.units import printable

NO_PART = "(no part)"
_NODE = "node "
_AT = " at "  # and the caller: one of several engines


class Rule(NamedTuple):
    part: str  # "\\1" is the group of either pattern; "": the search ends
    objects: str  # beginnings of the object file's path
    functions: str  # beginnings of the demangled name


RULES = (
    # A plug-in has elements of one sort, whose functions have no names in a stripped file; Jetson's are libgstnv*.
    Rule(r"GStreamer \1", r".*/gstreamer-1\.0/libgst([^/]+?)\.so", ""),
    Rule(r"GStreamer \1", r".*/gst-plugins/lib(?:nvds)?gst_?([^/]+?)\.so", ""),  # DeepStream's
    Rule("", r".*/libgstreamer-1\.0\.so", "gst_pad_(?:push|pull_range|send_event|query|peer_query)"),
    Rule(_NODE + r"\1", "", r"(?:.* )?rclcpp_components::NodeFactoryTemplate<([\w:]+)>::create_node_instance"),
    Rule(_NODE + r"\1", "", r"class_loader::.*MetaObject<([\w:]+), nodelet::Nodelet>::create"),  # of ROS 1
    # Inline functions of NvInfer.h: whole names where they are compiled, bare ones where they are inlined and have lines.
    Rule(f"TensorRT engine{_AT}", "", r"(?:nvinfer1::IRuntime::)?deserializeCudaEngine\b"),
    Rule(f"TensorRT context{_AT}", "", r"(?:nvinfer1::ICudaEngine::)?createExecutionContext(?:WithoutDeviceMemory)?\b"),
    Rule(f"TensorRT run{_AT}", "", r"(?:nvinfer1::IExecutionContext::)?(?:enqueue|enqueueV\d|executeV\d)\b"),
    Rule(f"TensorRT builder{_AT}", "", r"(?:nvinfer1::IBuilder::)?(?:buildSerializedNetwork|buildEngineWithConfig)\b"),
)
_PATTERNS = [(rule.part, re.compile(rule.objects), re.compile(rule.functions)) for rule in RULES]


def _part_of(frame: Frame) -> Optional[str]:
    """The part that a frame names, "" where the search ends; None if no row matches."""
    for part, objects, functions in _PATTERNS:
        path, function = objects.match(frame.object), functions.match(frame.function)
        if path and function:
            return (path if path.re.groups else function).expand(part)
    return None


class Parts:
    """The parts of one run: `names`, and the number of its name by account, -1 if it is of none."""

    def __init__(self, profile: Profile) -> None:
        found: Dict[int, str] = {}
        for id_, fields in profile.frames.items():
            part = _part_of(profile.frame(id_)) if fields[0] in "nim" else None
            if part is not None:
                found[id_] = part
        classes = {part[len(_NODE) :] for part in found.values() if part.startswith(_NODE)}
        # Also as an argument of a template that calls it: a function of its own may be inlined.
        of_node = re.compile(rf"(?<![\w:])({'|'.join(map(re.escape, classes))})::")
        for id_, fields in profile.frames.items() if classes else ():
            function = of_node.search(profile.strings[fields[1]])
            if function and id_ not in found:
                found[id_] = _NODE + function.group(1)
        self.names: List[str] = []
        numbers = {"": -1}
        by_node = array("i", [-1])
        for parent, frame in zip(profile.node_parent[1:], profile.node_frame[1:]) if any(found.values()) else ():
            part = found.get(frame)
            if part and part.endswith(_AT) and parent:
                part += describe(profile.frame(profile.node_frame[parent]))
            if part is not None and part not in numbers:
                numbers[part] = len(self.names)
                self.names.append(part)
            by_node.append(by_node[parent] if part is None else numbers[part])
        self.numbers = array("i", (by_node[node] if self.names else -1 for node in profile.accounts.nodes))

    def name(self, account: int) -> str:
        number = self.numbers[account]
        return NO_PART if number < 0 else printable(self.names[number])
