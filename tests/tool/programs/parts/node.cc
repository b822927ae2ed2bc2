// SPDX-License-Identifier: GPL-2.0-or-later
//
// A library with one node, vision::NODE: at its start it has START bytes of the host, at each call of its timer STEP
// bytes of the host and as many of the device.
#include "rclcpp.h"

extern "C" int cudaMalloc(void **, size_t);

namespace vision
{
class NODE : public rclcpp::Node
{
  public:
    explicit NODE(const rclcpp::NodeOptions &options) : Node("node", options)
    {
        map_ = new char[START];
        create_wall_timer(std::bind(&NODE::on_timer, this));
        create_wall_timer([this] {
            scratch_.resize(STEP / 2);
            n_calls_++; // after the call, or it would take this one's place on the stack
        });
    }

  private:
    void on_timer()
    {
        frame_.resize(STEP);
        status_ = cudaMalloc(&device_, STEP);
    }
    char *map_;
    int n_calls_ = 0, status_;
    std::vector<char> frame_, scratch_;
    void *device_;
};
} // namespace vision

#define NAME_(node) create_##node
#define NAME(node)  NAME_(node)

extern "C" rclcpp_components::NodeFactory *NAME(NODE)()
{
    return new rclcpp_components::NodeFactoryTemplate<vision::NODE>;
}
