// SPDX-License-Identifier: GPL-2.0-or-later
//
// Every way to say something with NVTX, over known allocations. With a first argument it is the number of "step"
// ranges.

#include <nvtx3/nvToolsExt.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

#define MIB (1 << 20)

static nvtxRangeId_t crossing;

static void *end_from_elsewhere(void *arg)
{
    nvtxRangePushA("worker");
    free(malloc(4 * MIB));
    nvtxRangePop();
    nvtxRangeEnd(crossing);
    return arg;
}

static nvtxEventAttributes_t event(void)
{
    nvtxEventAttributes_t attributes = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
    return attributes;
}

int main(int argc, char **argv)
{
    nvtxRangePushA("outer");
    int level = nvtxRangePushA("gr\u00f6\u00dfer \U0001f9e0");
    void *kept = malloc(1 * MIB);
    free(malloc(2 * MIB));
    nvtxRangePushW(L"no text that is read, but a range");
    nvtxRangePop();
    nvtxRangePop();
    nvtxMarkA("bytes");

    nvtxDomainHandle_t domain = nvtxDomainCreateA("lib");
    nvtxEventAttributes_t attributes = event();
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = nvtxDomainRegisterStringA(domain, "registered");
    nvtxDomainRangePushEx(domain, &attributes);
    nvtxRangePop(); // outer: the domain has a stack of its own
    free(kept);
    nvtxDomainRangePop(domain);
    nvtxDomainMarkEx(domain, &attributes);
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = "by attributes";
    nvtxRangeId_t range = nvtxDomainRangeStartEx(domain, &attributes);
    nvtxDomainRangeEnd(domain, range);
    attributes.messageType = NVTX_MESSAGE_UNKNOWN;
    nvtxMarkEx(&attributes);
    nvtxRangePop(); // of nothing

    crossing = nvtxRangeStartA("crossing");
    pthread_t thread;
    pthread_create(&thread, NULL, end_from_elsewhere, NULL);
    pthread_join(thread, NULL);

    for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--) {
        nvtxRangePushA("step");
        nvtxRangePop();
    }
    const char *injection = getenv("NVTX_INJECTION64_PATH");
    printf("levels from %d; tool: %s; PATH: %s\n", level, injection ? "yes" : "no", getenv("PATH") ? "yes" : "no");
    return 0;
}
