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

/* Where StarPU cannot continue: it asks for a copy's event until it has come,
 * unless it has the patch of contrib/build-starpu; and when it measures copies,
 * it uses memory that it did not get. */
static bool must_abort(const char *function, const char *file)
{
    return strstr(file, "perfmodel_bus") ||
           (!strcmp(function, "_starpu_cuda_test_request_completion") &&
            !dlsym(RTLD_DEFAULT, "starpu_cuda_errors_return"));
}

void starpu_cuda_report_error(const char *function, const char *file, int line,
                              int error);
void starpu_cuda_report_error(const char *function, const char *file, int line,
                              int error)
{
    void (*starpus)(const char *, const char *, int, int);

    if (!must_abort(function, file) && ddp__lost_note(function, error))
        return;
    *(void **)&starpus = dlsym(RTLD_NEXT, "starpu_cuda_report_error");
    if (starpus)
        starpus(function, file, line, error);
    abort();
}
