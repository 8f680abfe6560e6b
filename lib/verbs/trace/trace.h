/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trace points: a line for each call of a program, to `urnic trace`.
 */
#ifndef URNIC_VERBS_TRACE_H
#define URNIC_VERBS_TRACE_H

#include <stdbool.h>

#include "trace_page.h"

extern struct uv_trace_page *_Atomic uv_trace_page;

/* Are calls traced? If not, this costs one branch. */
static inline bool uv_tracing(void)
{
    struct uv_trace_page *page = atomic_load_explicit(&uv_trace_page, memory_order_acquire);
    return __builtin_expect(atomic_load_explicit(&page->on, memory_order_relaxed) != 0, 0);
}

/* Make the page. Called before programs make any object; repeated calls have no effect. */
void uv_trace_begin(void);

/* The kinds of results: 0 or errno's value; 0 or -1 and errno; a pointer or NULL and errno;
 * nothing; a number, negative without an errno. */
enum uv_trace_result { UV_STATUS, UV_MINUS, UV_POINTER, UV_NOTHING, UV_NUMBER };

/* A line: time, process and thread, the call, its arguments as formatted, the result. Keeps errno.
 * From any thread; takes no lock. A line that the tool does not take within a second is lost. */
void uv_trace(const char *call, enum uv_trace_result kind, int64_t result, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
