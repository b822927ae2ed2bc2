// SPDX-License-Identifier: GPL-2.0-or-later
//
// Benchmark: many deep call stacks that are all different, as C++ programs with callbacks and templates have them.
//
//     deep STACKS

#include <cstdlib>
#include <vector>

namespace
{
constexpr int depth = 40;

struct Step {
    virtual ~Step() = default;
    virtual char *run(unsigned path, int level) const = 0;
};

const Step *steps[2];

char *next(unsigned path, int level)
{
    // Where all paths have parted they go on alike.
    return level == depth ? new char[24] : steps[level < 20 ? path & 1 : 0]->run(path >> 1, level + 1);
}

template <int which> struct Kind : Step {
    __attribute__((noinline)) char *run(unsigned path, int level) const override
    {
        char *volatile made = next(path, level);
        return made;
    }
};
} // namespace

int main(int argc, char **argv)
{
    const Kind<0> first;
    const Kind<1> second;
    steps[0] = &first;
    steps[1] = &second;
    unsigned n = argc > 1 ? std::atoi(argv[1]) : 200000;
    std::vector<char *> made(n);
    for (unsigned i = 0; i < n; i++)
        made[i] = next(i, 0);
    for (char *p : made)
        delete[] p;
    return 0;
}
