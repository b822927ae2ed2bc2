// SPDX-License-Identifier: GPL-2.0-or-later
//
// Two nodes composed in one process, as component_container composes them.
#include "rclcpp.h"

extern "C" rclcpp_components::NodeFactory *create_Camera();
extern "C" rclcpp_components::NodeFactory *create_Detector();

int main()
{
    rclcpp::Executor executor;
    for (auto factory : {create_Camera(), create_Detector()})
        executor.add_node(factory->create_node_instance(rclcpp::NodeOptions()));
    executor.spin_some();
}
