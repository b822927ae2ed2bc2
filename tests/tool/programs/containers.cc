// SPDX-License-Identifier: GPL-2.0-or-later
//
// Containers of the C++ library: reallocation of vectors, nodes, rehashing, strings, shared ownership, exceptions.

#include <cstdio>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

static std::string fail(int i)
{
    std::vector<std::string> held(20, std::string(100, 'x'));
    if (i % 3 == 0)
        throw std::runtime_error("number " + std::to_string(i) + " fails with a message that does not fit in place");
    return held[static_cast<std::size_t>(i) % held.size()];
}

int main()
{
    std::vector<int> numbers;
    std::map<int, std::string> tree;
    std::unordered_map<std::string, std::vector<double>> table;
    std::deque<std::string> queue;
    std::list<std::shared_ptr<int>> shared;
    std::size_t failures = 0, length = 0;
    for (int i = 0; i < 1500; i++) {
        numbers.push_back(i);
        tree[i * 7919 % 1501] = std::string(static_cast<std::size_t>(i % 60), 'a');
        table["key " + std::to_string(i % 97)].push_back(i);
        queue.push_back(std::to_string(i) + " in a string that is too long for the small buffer");
        if (i % 2)
            queue.pop_front();
        shared.push_back(std::make_shared<int>(i));
        if (i % 50 == 0) {
            try {
                length += fail(i).size();
            } catch (const std::exception &error) {
                failures++;
                length += std::string(error.what()).size();
            }
        }
    }
    numbers.shrink_to_fit();
    tree.clear();
    std::printf("%zu %zu %zu %zu %zu %zu\n", numbers.size(), table.size(), queue.size(), shared.size(), failures,
                length);
    return 0;
}
