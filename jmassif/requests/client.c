// SPDX-License-Identifier: GPL-2.0-or-later
//
// Client requests and monitor commands: the way from a request's number to its module. Any program can forge a
// request, so addresses of texts and arrays are checked.

#include "requests/client.h"
#include "base/client_memory.h"
#include "base/clock.h"
#include "base/libc.h"
#include "base/text.h"
#include "cuda/cuda.h"
#include "events/region.h"
#include "events/snapshot.h"
#include "host/host.h"
#include "ledger/account.h"
#include "ledger/ledger.h"
#include "ledger/live_tensors.h"
#include "machine/manifest.h"
#include "pages/pages.h"
#include "requests/nvtx.h"
#include "tensors/tensor.h"
#include "trace/trace.h"

#include "jmassif.h"
#include "preload/protocol.h"

#define MAX_TEXT 4096

void jm_client_monitor(const HChar *command)
{
    if (*command == 's')
        jm_snapshot_take(SNAPSHOT_REQUEST);
    const HChar *path = jm_trace_path(); // the snapshot has created a forked child's trace
    if (!path)
        jm_print(HOST_MONITOR, "the trace cannot be written\n");
    else if (*command == 's')
        jm_print(HOST_MONITOR, "snapshot written to %s\n", path);
    else
        jm_print(HOST_MONITOR, "jmassif monitor commands:\n  snapshot  take a snapshot now and flush the trace (%s)\n",
                 path);
}

static const HChar *request_text(UWord address)
{
    static HChar text[MAX_TEXT];
    if (!jm_read_string(address, text, sizeof text))
        strcpy(text, "(unreadable)");
    return text;
}

static void asked_for_variable(UWord name_at, UWord value_at)
{
    static HChar name[MAX_TEXT], value[MAX_TEXT];
    if (!jm_read_string(name_at, name, sizeof name) || (value_at && !jm_read_string(value_at, value, sizeof value)))
        return;
    jm_manifest_variable(name, value_at ? value : NULL);
    if (jm_text_equal(name, "PYTORCH_NO_CUDA_MEMORY_CACHING"))
        jm_account_without_cache(value_at != 0);
}

static void read_usage(ThreadId tid, UWord array)
{
    if (!host_is_writable(array, 5 * sizeof(UWord)))
        return;
    static const PeakId peaks[] = {PEAK_HOST, PEAK_DEVICE, PEAK_TOTAL};
    UWord *bytes = (UWord *)array;
    jm_live_tensors_settle(tid);
    jm_pages_sample(True);
    bytes[0] = jm_ledger_total(SIDE_HOST);
    bytes[1] = jm_ledger_total(SIDE_DEVICE);
    for (UInt i = 0; i < 3; i++) {
        ULong time, host, device;
        jm_ledger_peak(peaks[i], &time, &host, &device);
        bytes[2 + i] = i == 0 ? host : i == 1 ? device : host + device;
    }
}

Bool jm_client_handle_request(ThreadId tid, UWord *args, UWord *result)
{
    *result = 0;
    switch (args[0]) {
    case JMASSIF_REQUEST_SNAPSHOT:
        jm_live_tensors_settle(tid);
        jm_snapshot_take(SNAPSHOT_REQUEST);
        return True;
    case JMASSIF_REQUEST_MARK:
    case JMASSIF_REQUEST_STAGE:
        jm_live_tensors_settle(tid);
        jm_trace_mark(jm_clock_now(), jm_trace_string(request_text(args[1])));
        jm_snapshot_take(SNAPSHOT_MARK); // writes the peaks so far
        if (args[0] == JMASSIF_REQUEST_STAGE) {
            jm_ledger_restart_peaks();
            jm_trace_stage(jm_clock_now());
        }
        return True;
    case JMASSIF_REQUEST_USAGE:
        read_usage(tid, args[1]);
        return True;
    case JMASSIF_REQUEST_REGION_BEGIN:
        jm_region_begin(tid, jm_region_name(request_text(args[1])), 0);
        return True;
    case JMASSIF_REQUEST_REGION_END:
        jm_region_end_named(tid, jm_region_name(request_text(args[1])));
        return True;
    case JMASSIF_REQUEST_TENSOR:
        jm_tensor_handed_out_by_program(tid, args[1], args[2]);
        return True;
    case JMASSIF_REQUEST_TENSOR_FREED:
        jm_tensor_taken_back(tid, args[1]);
        return True;
    case JM_REQ_EXIT:
        host_exit_called();
        return True;
    case JM_REQ_VARIABLE:
        asked_for_variable(args[1], args[2]);
        return True;
    case JM_REQ_NVTX:
        *result = jm_nvtx_call(tid, args[1], args[2], args[3], args[4]);
        return True;
    case JM_REQ_NVTX_LIBRARY:
        *result = host_is_writable(args[2], args[3]) && jm_nvtx_library_path(args[1], (HChar *)args[2], args[3]);
        return True;
    default:
        return jm_cuda_handle_request(tid, args, result);
    }
}
