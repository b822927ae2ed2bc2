// SPDX-License-Identifier: GPL-2.0-or-later
//
// Every form of operator new and delete: scalar and array, sized, aligned, nothrow.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

struct alignas(128) Wide {
    char bytes[384];
};

struct Thrower {
    char bytes[1000];
    Thrower() { throw 7; }
};

static unsigned wrong;

template <typename T> static T *checked(T *p, std::size_t alignment)
{
    wrong += !p || reinterpret_cast<std::uintptr_t>(p) % alignment != 0;
    return p;
}

int main()
{
    const auto alignment = std::align_val_t(256);
    int *scalar = checked(new int(5), 4);
    char *array = checked(new char[10000], 1);
    int *quiet = checked(new (std::nothrow) int(6), 4);
    char *quiet_array = checked(new (std::nothrow) char[20000], 1);
    Wide *wide = checked(new Wide, 128);
    Wide *wide_array = checked(new Wide[9], 128);
    Wide *quiet_wide = checked(new (std::nothrow) Wide, 128);
    Wide *quiet_wide_array = checked(new (std::nothrow) Wide[5], 128);
    void *sized = checked(::operator new(333), 1);
    void *sized_array = checked(::operator new[](444), 1);
    void *sized_aligned = checked(::operator new(555, alignment), 256);
    void *sized_aligned_array = checked(::operator new[](666, alignment), 256);
    void *aligned = checked(::operator new(777, alignment), 256);
    void *aligned_array = checked(::operator new[](888, alignment), 256);
    void *quiet_aligned = checked(::operator new(999, alignment, std::nothrow), 256);
    void *quiet_aligned_array = checked(::operator new[](1111, alignment, std::nothrow), 256);
    try {
        new Thrower;
    } catch (int value) {
        std::printf("the constructor threw %d\n", value);
    }
    volatile std::size_t huge = SIZE_MAX / 4;
    std::printf("too much, quietly: %s\n", new (std::nothrow) char[huge] ? "memory" : "nothing");

    delete scalar;
    delete[] array;
    ::operator delete(quiet, std::nothrow);
    ::operator delete[](quiet_array, std::nothrow);
    delete wide;
    delete[] wide_array;
    delete quiet_wide;
    delete[] quiet_wide_array;
    ::operator delete(sized, std::size_t(333));
    ::operator delete[](sized_array, std::size_t(444));
    ::operator delete(sized_aligned, std::size_t(555), alignment);
    ::operator delete[](sized_aligned_array, std::size_t(666), alignment);
    ::operator delete(aligned, alignment);
    ::operator delete[](aligned_array, alignment);
    ::operator delete(quiet_aligned, alignment, std::nothrow);
    ::operator delete[](quiet_aligned_array, alignment, std::nothrow);
    delete static_cast<int *>(nullptr);
    std::printf("%u wrong\n", wrong);
    return 0;
}
