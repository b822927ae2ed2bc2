// SPDX-License-Identifier: GPL-2.0-or-later
//
// The C++ objects of PyTorch 1.5 to 2.6; see layout.h. The two changes of layout in that time are detected from the
// objects. Reference counts took two words and take one since 2.3 (c10/util/intrusive_ptr.h), so the first word that is
// an address shows the size. A Python tensor began with its impl; since 1.9 a flag precedes it, which says whether the
// impl is borrowed (torch/csrc/autograd/python_variable.h).

#include "tensors/torch_layout.h"
#include "base/client_memory.h"
#include "base/libc.h"

#define PYTHON_HEAD 16 // bytes of PyObject_HEAD
#define DATA_DEVICE 24 // offset in c10::DataPtr: after the pointer, its context and its deleter
#define DEVICE_CUDA 1

// torch::autograd::AutogradMeta (torch/csrc/autograd/variable.h).
#define META_GRADIENT      40
#define META_FUNCTION      48  // NULL in a leaf
#define META_WANTS_TO_2_0  136 // bool
#define META_WANTS_FROM_21 144 // the pointer at 136 cannot look like a bool of 1

static UWord word_at(Addr address)
{
    UWord value;
    jm_read_word(address, &value);
    return value;
}

static Bool is_object(Addr address)
{
    return address && !(address & 7) && jm_is_readable(address, 16);
}

Addr jm_torch_impl(Addr python_tensor)
{
    Addr first = word_at(python_tensor + PYTHON_HEAD);
    if (is_object(first) && is_object(word_at(first)))
        return first;
    Addr impl = word_at(python_tensor + PYTHON_HEAD + 8);
    return is_object(impl) ? impl : 0;
}

// Bytes of the virtual table and reference counts of every counted object. 0: not known yet.
static UInt head_bytes(Addr impl)
{
    static UInt known;
    UWord word = word_at(impl + 16);
    if (!known && word)
        known = is_object(word) ? 16 : 24;
    return known;
}

void jm_torch_read(Addr impl, TorchTensor *tensor)
{
    memset(tensor, 0, sizeof *tensor);
    const UInt head = head_bytes(impl);
    const Addr storage = head ? word_at(impl + head) : 0;
    if (is_object(storage)) {
        tensor->has_storage = True;
        tensor->data = word_at(storage + head);
        tensor->is_cuda = (word_at(storage + head + DATA_DEVICE) & 0xff) == DEVICE_CUDA;
    }
    const Addr meta = head ? word_at(impl + head + 8) : 0;
    if (!is_object(meta) || !is_object(word_at(meta)))
        return;
    const Addr gradient = word_at(meta + META_GRADIENT);
    // PyTorch's placeholder for no tensor is the only object with a reference count of 0.
    if (is_object(gradient) && (UInt)word_at(gradient + 8) != 0)
        tensor->gradient = gradient;
    const UWord wants = word_at(meta + META_WANTS_TO_2_0);
    const Bool is_trained = (wants & 0xff) == 1 || (word_at(meta + META_WANTS_FROM_21) & 0xff) == 1;
    tensor->is_leaf = is_trained && !word_at(meta + META_FUNCTION);
}
