/* test_sched_names.c - which schedulers STARPU_SCHED may name
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "runtime/scheduler.h"
#include "runtime/scheduler_names.h"
#include "tap.h"

static void test_names(void)
{
    struct starpu_sched_policy **p = starpu_sched_get_predefined_policies();
    int bad = 0, refused = 0;

    unsetenv("STARPU_SCHED_LIB");
    for (; *p; p++) {
        const char *name = (*p)->policy_name;
        bool unusable = name && (!strcmp(name, "heteroprio") ||
                                 !strcmp(name, "graph_test") ||
                                 !strcmp(name, "modular-heteroprio-heft"));

        refused += unusable;
        bad += (ddp__sched_check(name) != 0) != unusable;
    }
    is_int(bad, 0, "STARPU_SCHED may name the schedulers of StarPU's");
    ok(refused > 0 && ddp__sched_check("heteroprio") == DDP_EINVAL &&
           strstr(ddp_errmsg(), "cannot run tasks of libddp"),
       "but those that would abort or wait for ever: %s", ddp_errmsg());
    is_int(ddp__sched_check("help"), DDP_EINVAL, "nor one that prints");
    is_int(ddp__sched_check("ddp"), 0, "and ddp");
    is_int(ddp__sched_check(NULL), 0, "and be unset");
    is_int(ddp__sched_check(""), 0, "or empty");
    is_int(ddp__sched_check("egaer"), DDP_EINVAL, "but not misspelt");
    ok(strstr(ddp_errmsg(), "'egaer' in STARPU_SCHED") &&
           strstr(ddp_errmsg(), "ddp, ") && strstr(ddp_errmsg(), "eager, "),
       "the message has the name and the choices");
    setenv("STARPU_SCHED_LIB", "/nonexistent.so", 1);
    is_int(ddp__sched_check("mine"), DDP_EINVAL, "nor from a missing library");
    unsetenv("STARPU_SCHED_LIB");
    ok(starpu_get_sched_lib_policy("ddp") == &ddp__sched_policy &&
           !starpu_get_sched_lib_policy("eager"),
       "the library offers ddp to StarPU");
    ok(starpu_get_sched_lib_policies()[0] == &ddp__sched_policy &&
           !starpu_get_sched_lib_policies()[1],
       "and lists it");
    for (const char **v =
             (const char *[]){"0", "-1", "two", "1x", "9999999999", NULL};
         *v; v++) {
        setenv("DDP_INFLIGHT", *v, 1);
        is_int(ddp__sched_check("ddp"), DDP_EINVAL, "DDP_INFLIGHT=%s", *v);
    }
    unsetenv("DDP_INFLIGHT");
}

int main(void)
{
    test_names();
    return done_testing();
}
