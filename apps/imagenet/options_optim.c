/* options_optim.c - what the optimizers have to do with options
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "ddp.h"

#include "options_optim.h"

const char *options_optimizer(int i)
{
    const struct ddp_optimizer_info *o =
        ddp_optimizer_info((enum ddp_optimizer_kind)i);

    return o ? o->name : NULL;
}

/* Append "a, b and c": the optimizers that use any of `uses`, or if lr is above
 * 0 those with this usual learning rate. */
static void put_optimizers(char *text, size_t size, unsigned uses, double lr)
{
    const struct ddp_optimizer_info *o;
    const char *held = NULL;
    size_t n;

    for (int i = 0, put = 0;; i++) {
        o = ddp_optimizer_info((enum ddp_optimizer_kind)i);
        if (o && !(lr > 0 ? o->lr == lr : (o->uses & uses) != 0))
            continue;
        n = strlen(text);
        if (held)
            snprintf(text + n, size - n, "%s%s",
                     !put++ ? ""
                     : o    ? ", "
                            : " and ",
                     held);
        if (!o)
            return;
        held = o->name;
    }
}

void options_momentum_users(char *text, size_t size)
{
    text[0] = '\0';
    put_optimizers(text, size, DDP_USES_MOMENTUM, 0);
}

void options_beta_users(char *text, size_t size)
{
    text[0] = '\0';
    put_optimizers(text, size, DDP_USES_BETA1 | DDP_USES_BETA2, 0);
}

void options_eps_users(char *text, size_t size)
{
    text[0] = '\0';
    put_optimizers(text, size, DDP_USES_EPS, 0);
}

/* Whether no optimizer before the i-th has its usual learning rate. */
static bool is_new_rate(int i)
{
    double lr = ddp_optimizer_info((enum ddp_optimizer_kind)i)->lr;

    while (--i >= 0)
        if (ddp_optimizer_info((enum ddp_optimizer_kind)i)->lr == lr)
            return false;
    return true;
}

/* Whose rate grows with the root of the batch, and the usual rates: that of the
 * first optimizer without names. */
void options_lr_base_users(char *text, size_t size)
{
    const struct ddp_optimizer_info *o;
    size_t n;

    text[0] = '\0';
    put_optimizers(text, size, DDP_USES_BETA2 | DDP_USES_EPS, 0);
    for (int i = 0; (o = ddp_optimizer_info((enum ddp_optimizer_kind)i)); i++) {
        if (!is_new_rate(i))
            continue;
        n = strlen(text);
        snprintf(text + n, size - n, i ? "; " : " [");
        if (i)
            put_optimizers(text, size, 0, o->lr);
        n = strlen(text);
        snprintf(text + n, size - n, "%s%g", i ? " " : "", o->lr);
    }
    n = strlen(text);
    snprintf(text + n, size - n, "]");
}
