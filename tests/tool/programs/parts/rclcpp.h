// SPDX-License-Identifier: GPL-2.0-or-later
//
// A stand-in for rclcpp and rclcpp_components of ROS 2: the names of their classes and functions, the library that each
// is compiled into (templates: the node's own), and nothing of what they do but calls.
#pragma once

#include <functional>
#include <memory>
#include <vector>

namespace rclcpp
{
struct NodeOptions {
};

class TimerBase
{
  public:
    virtual ~TimerBase() = default;
    virtual void execute_callback() = 0;
};

template <typename FunctorT> class GenericTimer : public TimerBase
{
  public:
    explicit GenericTimer(FunctorT callback) : callback_(callback) {}
    void execute_callback() override { callback_(); }

  private:
    FunctorT callback_;
};

class Node
{
  public:
    Node(const char *name, const NodeOptions &options);
    template <typename FunctorT> void create_wall_timer(FunctorT callback)
    {
        timers_.push_back(std::make_shared<GenericTimer<FunctorT>>(callback));
    }
    std::vector<std::shared_ptr<TimerBase>> timers_;

  private:
    std::vector<char> context_;
};

class Executor
{
  public:
    void add_node(std::shared_ptr<Node> node);
    void spin_some();
    static void execute_timer(std::shared_ptr<TimerBase> timer);

  private:
    std::vector<std::shared_ptr<Node>> nodes_;
};
} // namespace rclcpp

namespace rclcpp_components
{
class NodeFactory
{
  public:
    virtual ~NodeFactory() = default;
    virtual std::shared_ptr<rclcpp::Node> create_node_instance(const rclcpp::NodeOptions &options) = 0;
};

template <typename NodeT> class NodeFactoryTemplate : public NodeFactory
{
  public:
    std::shared_ptr<rclcpp::Node> create_node_instance(const rclcpp::NodeOptions &options) override
    {
        return std::make_shared<NodeT>(options);
    }
};
} // namespace rclcpp_components
