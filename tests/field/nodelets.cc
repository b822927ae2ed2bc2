// SPDX-License-Identifier: GPL-2.0-or-later
//
// With -DNODE=Camera, a library with one nodelet of ROS 1: at its start it has START bytes, at each call of its timer
// STEP bytes of the host, and as many of the device, where these go and come from; it prints their sum. Without, the
// program that loads the libraries that its arguments name as LIBRARY=CLASS, and waits until the timers were called.
#include <nodelet/nodelet.h>
#include <ros/ros.h>

#ifdef NODE
#include <class_loader/class_loader.hpp>
#include <cstdio>
#include <vector>

extern "C" int cudaMalloc(void **, size_t);
extern "C" int cudaMemcpy(void *, const void *, size_t, int);

#define NAME_OF(node) TEXT_OF(node)
#define TEXT_OF(name) #name

namespace vision
{
class NODE : public nodelet::Nodelet
{
    void onInit() override
    {
        map_.resize(START);
        timer_ = getNodeHandle().createTimer(ros::Duration(0.01), &NODE::on_timer, this, true);
    }

    void on_timer(const ros::TimerEvent &)
    {
        frame_.resize(STEP);
        for (size_t i = 0; i < STEP; i++)
            frame_[i] = static_cast<unsigned char>(i * i / 7 + START);
        void *device;
        if (cudaMalloc(&device, STEP) != 0 || cudaMemcpy(device, frame_.data(), STEP, 1) != 0)
            return;
        frame_.assign(STEP, 0);
        if (cudaMemcpy(frame_.data(), device, STEP, 2) != 0)
            return;
        unsigned long sum = 0;
        for (unsigned char byte : frame_)
            sum = sum * 31 + byte;
        std::printf("vision::" NAME_OF(NODE) " %lu\n", sum);
        getNodeHandle().setParam("/done/" + getName(), true);
    }

    std::vector<unsigned char> map_, frame_;
    ros::Timer timer_;
};
} // namespace vision

CLASS_LOADER_REGISTER_CLASS(vision::NODE, nodelet::Nodelet)
#else
#include <class_loader/class_loader.hpp>
#include <memory>
#include <nodelet/loader.h>

int main(int argc, char **argv)
{
    ros::init(argc, argv, "container", ros::init_options::NoRosout);
    ros::NodeHandle handle;
    std::vector<std::unique_ptr<class_loader::ClassLoader>> libraries;
    nodelet::Loader loader([&](const std::string &type) {
        for (auto &library : libraries)
            if (library->isClassAvailable<nodelet::Nodelet>(type)) {
                auto made = library->createInstance<nodelet::Nodelet>(type);
                return boost::shared_ptr<nodelet::Nodelet>(made.get(), [made](nodelet::Nodelet *) {});
            }
        return boost::shared_ptr<nodelet::Nodelet>();
    });
    for (int i = 1; i < argc; i++) {
        const std::string word = argv[i], type = word.substr(word.find('=') + 1);
        libraries.emplace_back(new class_loader::ClassLoader(word.substr(0, word.find('='))));
        if (!loader.load("/node" + std::to_string(i), type, ros::M_string(), nodelet::V_string()))
            return 1;
    }
    bool done = false;
    while (ros::ok() && !done) {
        ros::spinOnce();
        ros::WallDuration(0.02).sleep();
        done = true;
        for (int i = 1; i < argc; i++)
            done = done && handle.hasParam("/done/node" + std::to_string(i));
    }
    loader.clear();
    return 0;
}
#endif
