// SPDX-License-Identifier: GPL-2.0-or-later
//
// Recognises system calls that block, by number and arguments; see waiting.h. A wrong answer costs a few microseconds,
// or the last changes of a killed program.

#include "events/waiting.h"
#include "base/client_memory.h"
#include "base/kernel.h"

#include <asm/unistd.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/wait.h>
#include <time.h>

#define FUTEX_LOCK_PI_2 13 // FUTEX_LOCK_PI2 of newer headers

static Bool would_wait(UWord fd, Short events)
{
    struct pollfd asked = {.fd = (Int)fd, .events = events};
    struct timespec at_once = {0, 0};
    return jm_kernel_call(__NR_ppoll, (UWord)&asked, 1, (UWord)&at_once, 0, sizeof(ULong)) == 0;
}

// `duration` points to a timespec or a timeval; NULL means forever.
static Bool is_long(Addr duration, UWord per_ms)
{
    UWord seconds, fraction;
    return !jm_read_word(duration, &seconds) || !jm_read_word(duration + sizeof(UWord), &fraction) || seconds ||
           fraction >= LONG_WAIT_MS * per_ms;
}

// Sleeps to an absolute time, as the C library and Python do.
static Bool is_far(UWord clock, Addr moment)
{
    struct timespec now;
    UWord seconds, fraction;
    if (jm_kernel_call(__NR_clock_gettime, clock, (UWord)&now, 0, 0, 0) != 0 || !jm_read_word(moment, &seconds) ||
        !jm_read_word(moment + sizeof(UWord), &fraction))
        return True;
    return ((Long)seconds - (Long)now.tv_sec) * 1000 + ((Long)fraction - (Long)now.tv_nsec) / 1000000 >= LONG_WAIT_MS;
}

static Bool is_futex_wait(const UWord *args)
{
    UInt value;
    switch (args[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_REQUEUE_PI:
        // The call returns at once if the value differs.
        return jm_read_uint(args[0], &value) && value == (UInt)args[2] &&
               ((args[1] & FUTEX_CMD_MASK) != FUTEX_WAIT || is_long(args[3], 1000000));
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI_2:
        return True;
    default:
        return False;
    }
}

Bool jm_waiting_is_certain(UInt number, const UWord *args)
{
    switch (number) {
    case __NR_nanosleep:
        return is_long(args[0], 1000000);
    case __NR_clock_nanosleep:
        return args[1] & TIMER_ABSTIME ? is_far(args[0], args[2]) : is_long(args[2], 1000000);
#ifdef __NR_pause
    case __NR_pause:
#endif
    case __NR_rt_sigsuspend:
        return True;
    default:
        return False;
    }
}

Bool jm_waiting_is_likely(UInt number, const UWord *args)
{
    switch (number) {
    case __NR_read:
    case __NR_readv:
    case __NR_recvfrom:
    case __NR_recvmsg:
    case __NR_accept:
    case __NR_accept4:
        return would_wait(args[0], POLLIN);
    case __NR_write:
    case __NR_writev:
    case __NR_sendto:
    case __NR_sendmsg:
        return would_wait(args[0], POLLOUT);
    case __NR_futex:
        return is_futex_wait(args);
    case __NR_wait4:
        return !(args[2] & WNOHANG);
    case __NR_waitid:
        return !(args[3] & WNOHANG);
    case __NR_ppoll:
        return is_long(args[2], 1000000);
    case __NR_pselect6:
        return is_long(args[4], 1000000);
    case __NR_epoll_pwait:
#ifdef __NR_epoll_wait
    case __NR_epoll_wait:
#endif
        return (Int)args[3] < 0 || (Int)args[3] >= LONG_WAIT_MS;
#ifdef __NR_poll
    case __NR_poll:
        return (Int)args[2] < 0 || (Int)args[2] >= LONG_WAIT_MS;
#endif
#ifdef __NR_select
    case __NR_select:
        return is_long(args[4], 1000);
#endif
    case __NR_rt_sigtimedwait:
    case __NR_flock:
    case __NR_semtimedop:
    case __NR_msgrcv:
    case __NR_mq_timedreceive:
        return True;
    default:
        return False;
    }
}
