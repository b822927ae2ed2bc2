// SPDX-License-Identifier: GPL-2.0-or-later
//
// Roles of tensors from Python's objects; see tensor.h. A stack cannot show that a tensor becomes a parameter a moment
// later, and no function that could be wrapped is called when a module registers a buffer. PyTorch's objects show both.
// A walk over all objects of Python's garbage collector finds modules, optimizers and tensors in milliseconds, because
// it runs natively and reads a few words of each. Rules for stacks still decide in programs without Python, between two
// walks, and for tensors that die between them.

#include "tensors/tensor.h"
#include "base/client_memory.h"
#include "base/clock.h"
#include "base/libc.h"
#include "base/table.h"
#include "host/host.h"
#include "ledger/live_tensors.h"
#include "python/objects.h"

// The C++ objects of PyTorch 1.5 to 2.6. The two changes of layout in that time are detected from the objects.
// Reference counts took two words and take one since 2.3 (c10/util/intrusive_ptr.h), so the first word that is an
// address shows the size. A Python tensor began with its impl; since 1.9 a flag precedes it, which says whether the
// impl is borrowed (torch/csrc/autograd/python_variable.h).

typedef struct {
    Bool has_storage; // False for sparse tensors, which consist of other tensors
    Addr data;        // of its storage: the block from the allocator; 0: no elements
    Bool is_cuda;
    Bool is_leaf;  // and requires gradients
    Addr gradient; // its c10::TensorImpl; 0: none
} TorchTensor;

#define PYTHON_HEAD 16 // bytes of PyObject_HEAD
#define DATA_DEVICE 24 // offset in c10::DataPtr: after the pointer, its context and its deleter
#define DEVICE_CUDA 1

// torch::autograd::AutogradMeta (torch/csrc/autograd/variable.h).
#define META_GRADIENT      40
#define META_FUNCTION      48  // NULL in a leaf
#define META_WANTS_TO_2_0  136 // bool
#define META_WANTS_FROM_21 144 // the pointer at 136 cannot look like a bool of 1

static Bool is_object(Addr address)
{
    return address && !(address & 7) && jm_is_readable(address, 16);
}

// The c10::TensorImpl of a Python tensor; 0: none.
static Addr tensor_impl(Addr python_tensor)
{
    Addr first = jm_word_at(python_tensor + PYTHON_HEAD);
    if (is_object(first) && is_object(jm_word_at(first)))
        return first;
    Addr impl = jm_word_at(python_tensor + PYTHON_HEAD + 8);
    return is_object(impl) ? impl : 0;
}

// Bytes of the virtual table and reference counts of every counted object. 0: not known yet.
static UInt head_bytes(Addr impl)
{
    static UInt known;
    UWord word = jm_word_at(impl + 16);
    if (!known && word)
        known = is_object(word) ? 16 : 24;
    return known;
}

static void read_tensor(Addr impl, TorchTensor *tensor)
{
    memset(tensor, 0, sizeof *tensor);
    const UInt head = head_bytes(impl);
    const Addr storage = head ? jm_word_at(impl + head) : 0;
    if (is_object(storage)) {
        tensor->has_storage = True;
        tensor->data = jm_word_at(storage + head);
        tensor->is_cuda = (jm_word_at(storage + head + DATA_DEVICE) & 0xff) == DEVICE_CUDA;
    }
    const Addr meta = head ? jm_word_at(impl + head + 8) : 0;
    if (!is_object(meta) || !is_object(jm_word_at(meta)))
        return;
    const Addr gradient = jm_word_at(meta + META_GRADIENT);
    // PyTorch's placeholder for no tensor is the only object with a reference count of 0.
    if (is_object(gradient) && (UInt)jm_word_at(gradient + 8) != 0)
        tensor->gradient = gradient;
    const UWord wants = jm_word_at(meta + META_WANTS_TO_2_0);
    const Bool is_trained = (wants & 0xff) == 1 || (jm_word_at(meta + META_WANTS_FROM_21) & 0xff) == 1;
    tensor->is_leaf = is_trained && !jm_word_at(meta + META_FUNCTION);
}

// Classes that give tensors a role, as bits.
enum { IS_TENSOR = 1, IS_PARAMETER = 2, IS_MODULE = 4, IS_OPTIMIZER = 8, IS_SCRIPT = 16 };

static const struct {
    const HChar *module; // NULL: the name includes it
    const HChar *name;
    UInt bit;
} classes[] = {
    {NULL, "torch._C._TensorBase", IS_TENSOR}, // up to 2.1
    {NULL, "torch._C.TensorBase", IS_TENSOR},         {"torch.nn.parameter", "Parameter", IS_PARAMETER},
    {"torch.nn.modules.module", "Module", IS_MODULE}, {"torch.optim.optimizer", "Optimizer", IS_OPTIMIZER},
    {"torch.jit._script", "ScriptModule", IS_SCRIPT},
};

// Cache of classes by address. An entry holds for one walk, since a later class may get the address.
#define KNOWN_BITS 13
static struct {
    Addr type;
    UInt walk;
    UInt bits;
} known[1u << KNOWN_BITS];

static UInt n_walks;
static ULong n_tensors_then; // created before the last walk

// Roles, as bits, with an object that leads to no memory (a sparse gradient, an object of C++).
static UInt hidden;

static Bool add_bits(Addr type, void *context)
{
    UInt *bits = context;
    for (UInt i = 0; i < sizeof classes / sizeof *classes; i++)
        if (jm_python_is_named(type, classes[i].name) &&
            (!classes[i].module || jm_python_is_of_module(type, classes[i].module)))
            *bits |= classes[i].bit;
    return False;
}

static UInt class_of(Addr type)
{
    UInt place = jm_place(type, KNOWN_BITS);
    if (known[place].type != type || known[place].walk != n_walks) {
        known[place].type = type;
        known[place].walk = n_walks;
        known[place].bits = 0;
        jm_python_any_base(type, add_bits, &known[place].bits);
    }
    return known[place].bits;
}

static void observe(const TorchTensor *tensor, ObservedRole role)
{
    Bool is_found = jm_live_tensor_observed(tensor->data, role);
    if (!is_found && (!tensor->has_storage || (tensor->is_cuda && tensor->data)))
        hidden |= 1u << role;
}

// Read a Python tensor, and its gradient if `gradient` is not NULL. False if it has no impl. Threads without the
// interpreter's lock may end PyTorch's own objects.
static Bool read_tensors(Addr object, TorchTensor *tensor, TorchTensor *gradient)
{
    const Bool copied = jm_read_copies(host_others_run());
    const Addr impl = tensor_impl(object);
    if (impl)
        read_tensor(impl, tensor);
    if (impl && gradient && tensor->gradient)
        read_tensor(tensor->gradient, gradient);
    jm_read_copies(copied);
    return impl != 0;
}

// Containers are searched to this depth: an optimizer's state is a dictionary by parameter, and some keep lists in it.
#define MAX_DEPTH 5

typedef struct {
    ObservedRole role;
    UInt depth;
} Search;

static void observe_all(Addr object, void *context)
{
    const Search *search = context;
    const Addr type = jm_python_type(object);
    TorchTensor tensor;
    if (type && (class_of(type) & IS_TENSOR)) {
        if (read_tensors(object, &tensor, NULL))
            observe(&tensor, search->role);
    } else if (search->depth < MAX_DEPTH) {
        jm_python_each_value(object, observe_all, &(Search){search->role, search->depth + 1});
    }
}

static void observe_module(Addr module)
{
    Search search = {OBSERVED_PARAMETER, MAX_DEPTH - 1};
    observe_all(jm_python_attribute(module, "_parameters"), &search);
    observe_all(jm_python_attribute(module, "_buffers"), &search);
}

static void observe_group(Addr group, void *context)
{
    observe_all(jm_python_item(group, "params"), &(Search){OBSERVED_PARAMETER, 0});
}

static void observe_optimizer(Addr optimizer)
{
    observe_all(jm_python_attribute(optimizer, "state"), &(Search){OBSERVED_OPTIMIZER, 0});
    jm_python_each_value(jm_python_attribute(optimizer, "param_groups"), observe_group, NULL);
}

static void observe_own(Addr object, Bool is_parameter)
{
    TorchTensor tensor, gradient;
    if (!read_tensors(object, &tensor, &gradient))
        return;
    if (is_parameter)
        observe(&tensor, OBSERVED_PARAMETER);
    else if (tensor.is_leaf)
        jm_live_tensor_observed(tensor.data, OBSERVED_LEAF);
    if (tensor.gradient)
        observe(&gradient, OBSERVED_GRADIENT);
}

// Set when a walk has seen a class of PyTorch. Otherwise rules stay in force, as in a program with another framework.
static Bool is_torch;

static Bool observe_object(Addr object, Addr type)
{
    UInt bits = class_of(type);
    is_torch |= bits != 0;
    if (bits & IS_TENSOR)
        observe_own(object, (bits & IS_PARAMETER) != 0);
    if (bits & IS_MODULE)
        observe_module(object);
    if (bits & IS_OPTIMIZER)
        observe_optimizer(object);
    if (bits & IS_SCRIPT)
        hidden = ~0u;
    return bits != 0;
}

static void walk(Bool is_all)
{
    hidden = 0;
    is_torch = False;
    n_walks++;
    n_tensors_then = jm_live_tensors_n_created();
    jm_live_tensors_observe_begin();
    Bool is_there = jm_python_each_object(observe_object, True);
    jm_live_tensors_observe_end(is_there && is_all && is_torch ? ~hidden : 0);
}

void jm_torch_observe_roles(void)
{
    if (jm_live_tensors_n())
        walk(True);
}

// Walks in passing may take 1/SHARE of the run.
#define SHARE 50

void jm_torch_observe_roles_in_passing(Bool in_full)
{
    static ULong taken_ms;
    const ULong now = jm_clock_ms();
    if (jm_live_tensors_n() == 0 || taken_ms > now / SHARE || n_tensors_then == jm_live_tensors_n_created())
        return;
    walk(False);
    taken_ms += 1 + jm_clock_ms() - now;
}
