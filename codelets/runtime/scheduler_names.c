/* scheduler_names.c - the names that STARPU_SCHED may have
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * StarPU takes its default scheduler when a name is unknown, and only prints a
 * warning: a slip of the pen would silently train under another scheduler.
 */
#include "config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "runtime/scheduler.h"
#include "runtime/scheduler_names.h"

struct starpu_sched_policy *starpu_get_sched_lib_policy(const char *name)
{
    return strcmp(name, ddp__sched_policy.policy_name) ? NULL
                                                       : &ddp__sched_policy;
}

struct starpu_sched_policy **starpu_get_sched_lib_policies(void)
{
    static struct starpu_sched_policy *list[] = {&ddp__sched_policy, NULL};

    return list;
}

/* Whether the library of STARPU_SCHED_LIB has the policy. */
static bool in_library(const char *name)
{
    const char *path = getenv("STARPU_SCHED_LIB");
    struct starpu_sched_policy *(*get)(const char *);
    int major, minor, release;
    void *lib;
    bool found;

    starpu_get_version(&major, &minor, &release);
    if (!path || major < 1 || (major == 1 && minor < 4)) /* 1.3 ignores it */
        return false;
    if (!(lib = dlopen(path, RTLD_NOW)))
        return false;
    *(void **)&get = dlsym(lib, "starpu_get_sched_lib_policy");
    found = get && get(name);
    dlclose(lib);
    return found;
}

/* Two end the process at the first task: they need to know, by calls of
 * their own, which kinds of workers there are and which task is for which.
 * graph_test needs to know when a whole graph has been submitted, and waits
 * for that, in StarPU 1.4 for ever. */
static bool is_unusable(const char *name)
{
    return !strcmp(name, "heteroprio") || !strcmp(name, "graph_test") ||
           !strcmp(name, "modular-heteroprio-heft");
}

static bool is_known_policy(const char *name)
{
    struct starpu_sched_policy **p = starpu_sched_get_predefined_policies();

    if (!strcmp(name, "ddp") ||
        !strncmp(name, "heft", 4)) /* an old name that StarPU still takes */
        return true;
    for (; *p; p++)
        if ((*p)->policy_name && !strcmp(name, (*p)->policy_name))
            return true;
    return in_library(name);
}

/* Append the predefined names, those of the modular family last. */
static void list_names(char *text, size_t size)
{
    struct starpu_sched_policy **all = starpu_sched_get_predefined_policies();
    size_t len = 0;

    text[0] = '\0';
    for (int modular = 0; modular <= 1; modular++)
        for (struct starpu_sched_policy **p = all; *p; p++) {
            const char *name = (*p)->policy_name;

            if (!name || is_unusable(name) ||
                (strncmp(name, "modular-", 8) == 0) != modular ||
                len + strlen(name) + 3 > size)
                continue;
            len += (size_t)sprintf(text + len, ", %s", name);
        }
}

int ddp__sched_inflight(int *lanes)
{
    *lanes = 0;
    return ddp__env_number("DDP_INFLIGHT", 1, 1024, lanes);
}

int ddp__sched_check(const char *name)
{
    char names[1024];
    int lanes;

    if (!name || !*name || (is_known_policy(name) && !is_unusable(name)))
        return ddp__sched_inflight(&lanes);
    list_names(names, sizeof(names));
    if (is_unusable(name))
        return ddp__fail(DDP_EINVAL,
                         "StarPU's scheduler '%s' cannot run tasks of libddp; "
                         "available for STARPU_SCHED: ddp%s",
                         name, names);
    return ddp__fail(DDP_EINVAL,
                     "unknown scheduler '%s' in STARPU_SCHED; available: ddp%s",
                     name, names);
}
