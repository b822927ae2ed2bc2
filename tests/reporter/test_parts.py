# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory by part: elements of GStreamer by where they stand in a stream, nodes of ROS by class, phases of TensorRT by caller.

Recordings are in tests/tool/test_parts.py, and of GStreamer and nodelets themselves in tests/field.
"""

import csv
from pathlib import Path
from typing import Dict, List

from tests.reporter.commands import jm_print
from tests.reporter.traces import Trace

PUSH = "gst_pad_push (/usr/lib/libgstreamer-1.0.so.0)"
POOL = ["gst_buffer_pool_acquire_buffer (/usr/lib/libgstreamer-1.0.so.0)", "f (/usr/lib/libgstbase-1.0.so.0)"]
QUERY = "gst_pad_peer_query (/usr/lib/libgstreamer-1.0.so.0)"


def plugin(name: str) -> str:
    return f"f (/usr/lib/gstreamer-1.0/libgst{name}.so)"


def by_part(directory: Path, stacks: List[List[str]]) -> Dict[str, int]:
    """Bytes by part: 1 in the first stack, 2 in the second, 4 in the third …"""
    trace = Trace(time_unit="ms", memory="unified")
    threads = [trace.thread(1), trace.thread(2, "queue0:src"), trace.thread(3, "camera:src")]
    of_thread = {"main": threads[0], "queue": threads[1], "camera": threads[2]}
    accounts = [trace.account("heap", "lib", [of_thread.get(frame, frame) for frame in stack]) for stack in stacks]
    changes = {account: (1 << bit, 1, 1 << bit, 1, 0) for bit, account in enumerate(accounts)}
    trace.snapshot(5, "time", changes, {"total": (5, {})})
    trace.lines.append("Z 10 exit 0")
    done = jm_print("--format=csv", "--by=part", trace.save(directory))
    assert done.status == 0, done.err
    return {row["part"]: int(row["host_live_bytes"]) for row in csv.DictReader(done.out.splitlines())}


def test_an_element_is_found_by_its_place_in_the_stream(tmp_path: Path) -> None:
    stacks = [
        [*POOL, "camera"],
        [*POOL, PUSH, plugin("coreelements"), "queue"],  # the element that the queue feeds
        [plugin("videoscale"), PUSH, plugin("coreelements"), "queue"],
        [*POOL, PUSH, POOL[1], PUSH, POOL[1], PUSH, plugin("coreelements"), "queue"],
        [plugin("jpeg"), QUERY, PUSH, plugin("coreelements"), "queue"],  # may be anywhere
        [plugin("coreelements"), "queue"],
        [plugin("nvvidconv"), "main"],
        ["malloc (libc.so.6)", "main"],
    ]
    assert by_part(tmp_path, stacks) == {
        "camera": 1,
        "videoscale (1 after queue0)": 2 + 4,
        "element (3 after queue0)": 8,
        "plug-in jpeg": 16,
        "queue0": 32,
        "plug-in nvvidconv": 64,
        "(no part)": 128,
    }


def test_a_stream_without_a_threads_name_is_of_some_source(tmp_path: Path) -> None:
    assert by_part(tmp_path, [[*POOL, PUSH, POOL[1]]]) == {"element (1 after a source)": 1}


def test_a_node_is_its_class_in_callbacks_too(tmp_path: Path) -> None:
    make = "rclcpp_components::NodeFactoryTemplate<demo::Talker>::create_node_instance(rclcpp::NodeOptions const&)"
    create = "class_loader::impl::MetaObject<demo::Eye, nodelet::Nodelet>::create() const"
    stacks = [
        ["operator new(unsigned long) (libstdc++.so.6)", f"{make} (libtalker.so)", "main"],
        ["demo::Talker::on_timer() (libtalker.so)", "rclcpp::Executor::execute_timer (librclcpp.so)", "main"],
        ["f (libtalker.so)", "rclcpp::GenericTimer<std::_Bind<void (demo::Talker::*())> >::g() (libtalker.so)", "main"],
        ["demo::TalkerTest::run() (libother.so)", "main"],
        [f"{create} (libeye.so)", "main"],
        ["demo::Eye::onInit() (libeye.so)", "main"],
    ]
    assert by_part(tmp_path, stacks) == {"node demo::Talker": 1 + 2 + 4, "(no part)": 8, "node demo::Eye": 16 + 32}


def test_an_engine_goes_by_its_caller(tmp_path: Path) -> None:
    load = "nvinfer1::IRuntime::deserializeCudaEngine(void const*, unsigned long) (app)"
    stacks = [
        ["f (libnvinfer.so.10)", load, "first (a.cc:5)", "main"],
        ["f (libnvinfer.so.10)", load, "second (a.cc:9)", "main"],
        ["f (libnvinfer.so.10)", "createExecutionContextWithoutDeviceMemory (NvInferRuntime.h:7)"],
        ["deserializeCudaEngines (app)", "main"],
    ]
    assert by_part(tmp_path, stacks) == {
        "TensorRT engine at first (a.cc:5)": 1,
        "TensorRT engine at second (a.cc:9)": 2,
        "TensorRT context": 4,
        "(no part)": 8,
    }


def test_the_report_of_another_program_says_nothing_of_parts(tmp_path: Path) -> None:
    trace = Trace(time_unit="ms", memory="unified")
    account = trace.account("heap", "app", ["malloc (libc.so.6)", "main (a.c:5)"])
    trace.snapshot(5, "time", {account: (1000, 1, 1000, 1, 0)}, {"total": (5, {})})
    trace.lines.append("Z 10 exit 0")
    done = jm_print("--all", trace.save(tmp_path))
    assert done.status == 0 and "By element" not in done.out
