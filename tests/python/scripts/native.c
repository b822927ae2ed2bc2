// SPDX-License-Identifier: GPL-2.0-or-later
//
// Native code between Python functions, and native threads.

#include <pthread.h>
#include <stdlib.h>

// Of the interpreter; its headers are not at hand for all that this is compiled for.
extern void *PyObject_CallObject(void *callable, void *arguments);
extern void Py_DecRef(void *object);
extern int PyGILState_Ensure(void);
extern void PyGILState_Release(int state);

typedef void (*Callback)(void);

void bounce(Callback call)
{
    call();
    __asm__ volatile(""); // not a tail call: this function stays on the stack
}

// For ctypes.PyDLL, which keeps the interpreter's lock.
void bounce_object(void *callable)
{
    Py_DecRef(PyObject_CallObject(callable, NULL));
}

void *allocate(size_t bytes)
{
    void *p = malloc(bytes);
    __asm__ volatile("" : : "r"(p));
    return p;
}

void allocate_while_wrong(volatile size_t *word, size_t wrong, size_t bytes)
{
    size_t right = *word;
    *word = wrong;
    free(allocate(bytes));
    *word = right;
}

typedef struct {
    size_t bytes;
    void *callable;
    int calls;
} Job;

// The thread is unknown to the interpreter before and after each call.
static void call_back(const Job *job)
{
    for (int i = 0; job->callable && i < job->calls; i++) {
        int state = PyGILState_Ensure();
        bounce_object(job->callable);
        PyGILState_Release(state);
    }
}

static void *run(void *argument)
{
    Job *job = argument;
    call_back(job);
    allocate(job->bytes);
    call_back(job);
    return NULL;
}

// On a new thread: calls back, allocates, calls back.
void on_thread(size_t bytes, void *callable, int calls)
{
    Job job = {bytes, callable, calls};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, &job) == 0)
        pthread_join(thread, NULL);
}
