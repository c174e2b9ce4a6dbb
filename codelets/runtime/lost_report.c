/* lost_report.c - what StarPU calls where CUDA fails
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * StarPU's own function aborts.  It is called as functions of other libraries
 * are, and a library is searched before those that it needs: unless a program
 * is linked with libstarpu before libddp, this one is called in its place.
 *
 * No header of StarPU is included: with CUDA, it has a type of CUDA's here.
 */
#include "config.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/lost.h"

/* Where StarPU cannot continue unless it has the patch of contrib/build-starpu:
 * when it measures copies, it uses memory that it did not get; and it asks for
 * a copy's event until it has come. */
static bool must_abort(const char *function, bool measures)
{
    const char *mark = NULL;

    if (measures)
        mark = "starpu_bus_errors_return";
    else if (!strcmp(function, "_starpu_cuda_test_request_completion"))
        mark = "starpu_cuda_errors_return";
    return mark && !dlsym(RTLD_DEFAULT, mark);
}

void starpu_cuda_report_error(const char *function, const char *file, int line,
                              int error);
void starpu_cuda_report_error(const char *function, const char *file, int line,
                              int error)
{
    void (*starpus)(const char *, const char *, int, int);
    bool measures = strstr(file, "perfmodel_bus");

    if (!must_abort(function, measures) &&
        ddp__lost_note(function, error, measures))
        return;
    *(void **)&starpus = dlsym(RTLD_NEXT, "starpu_cuda_report_error");
    if (starpus)
        starpus(function, file, line, error);
    abort();
}
