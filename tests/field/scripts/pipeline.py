# SPDX-License-Identifier: GPL-2.0-or-later
"""usage: pipeline.py camera|file
A pipeline of GStreamer: a test picture that is made smaller and recoloured, or a film (written first) that decodebin decodes.
Prints as JSON, by element, how many buffers it handed on at different addresses, and the bytes of one; as "result" a digest of
all that it handed on, by element."""

import hashlib
import json
import os
import sys
import tempfile
from typing import Any, Dict, Set

import gi
import numpy as np

gi.require_version("Gst", "1.0")
from gi.repository import Gst

Gst.init(None)
seen: Dict[str, Set[int]] = {}
sizes: Dict[str, int] = {}
digests: Dict[str, Any] = {}


def note(pad: Any, info: Any, name: str) -> Any:
    buffer = info.get_buffer()
    done, mapped = buffer.map(Gst.MapFlags.READ)
    assert done
    seen.setdefault(name, set()).add(np.frombuffer(mapped.data, np.uint8).ctypes.data)
    sizes[name] = mapped.size
    digests.setdefault(name, hashlib.sha256()).update(mapped.data)
    buffer.unmap(mapped)
    return Gst.PadProbeReturn.OK


def run(text: str, *noted: str) -> None:
    pipeline = Gst.parse_launch(text)
    for name in noted:
        pipeline.get_by_name(name).get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, note, name)
    pipeline.set_state(Gst.State.PLAYING)
    message = pipeline.get_bus().timed_pop_filtered(60 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    assert message and message.type == Gst.MessageType.EOS, message and message.parse_error()
    pipeline.set_state(Gst.State.NULL)


if sys.argv[1] == "camera":
    run(
        "videotestsrc name=camera num-buffers=60 ! video/x-raw,format=I420,width=1280,height=720 ! queue name=frames"
        " ! videoscale name=smaller ! video/x-raw,width=640,height=360"
        " ! videoconvert name=colours ! video/x-raw,format=RGB ! queue name=pictures ! fakesink",
        "camera",
        "smaller",
        "colours",
    )
else:
    with tempfile.TemporaryDirectory() as directory:
        film = os.path.join(directory, "film.avi")
        head = "videotestsrc num-buffers=30 ! video/x-raw,format=I420,width=320,height=240"
        run(f"{head} ! jpegenc ! avimux ! filesink location={film}")
        tail = "videoconvert name=colours ! video/x-raw,format=RGB ! queue name=pictures ! fakesink"
        run(f"filesrc location={film} ! decodebin ! queue name=decoded ! {tail}", "decoded", "colours")
told: Dict[str, Any] = {name: [len(addresses), sizes[name]] for name, addresses in sorted(seen.items())}
told["result"] = {name: digest.hexdigest() for name, digest in sorted(digests.items())}
print(json.dumps(told))
