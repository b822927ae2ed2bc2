// SPDX-License-Identifier: GPL-2.0-or-later
#include "rclcpp.h"

namespace rclcpp
{
Node::Node(const char *, const NodeOptions &) : context_(3000) {}

void Executor::add_node(std::shared_ptr<Node> node)
{
    nodes_.push_back(node);
}

void Executor::execute_timer(std::shared_ptr<TimerBase> timer)
{
    timer->execute_callback();
}

void Executor::spin_some()
{
    for (auto &node : nodes_)
        for (auto &timer : node->timers_)
            execute_timer(timer);
}
} // namespace rclcpp
