/* setup_network.c - the network that the settings name, and how it is evaluated
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdlib.h>
#include <string.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "common/opt_value.h"
#include "foreign.h"
#include "setup_network.h"

static const char *model_word(const void *arg, int i)
{
    (void)arg;
    return ddp_model_name(i);
}

/* timm's names of torchvision's networks. */
static int rename_model(struct settings *s)
{
    const char *name = foreign_model(s->model);
    char *copy;

    if (name == s->model)
        return OPTS_GO;
    if (!(copy = strdup(name)))
        return app_exit_code(DDP_ENOMEM);
    free(s->model);
    s->model = copy;
    return OPTS_GO;
}

int setup_check_model(const struct opts *o, struct settings *s)
{
    const char *name;
    int rc = rename_model(s);

    if (rc != OPTS_GO)
        return rc;
    for (int i = 0; (name = ddp_model_name(i)); i++)
        if (!strcmp(s->model, name))
            return opts_only(o, "hidden", !strcmp(name, "mlp"),
                             "only --model mlp has hidden layers");
    opt_complain_word(o, "model", s->model, model_word, NULL);
    return EXIT_USAGE;
}

/* The widths of mlp up to the classes: all pixels, the hidden layers. */
static void mlp_sizes(const struct settings *s, int sizes[OPT_WIDTHS_MAX + 2])
{
    int n = 0;

    sizes[n++] = (int)(s->img_size * s->img_size * 3);
    for (int i = 0; s->hidden[i]; i++)
        sizes[n++] = s->hidden[i];
    sizes[n] = 0;
}

/* Below 0 the option means the network's. */
static float library_rate(double asked)
{
    return asked < 0 ? DDP_MODEL_RATE : (float)asked;
}

ddp_chain_t *setup_model(const struct settings *s)
{
    int sizes[OPT_WIDTHS_MAX + 2];
    struct ddp_model_options m;

    ddp_model_options_init(&m);
    if (s->classes)
        m.classes = (int)s->classes;
    if (s->width)
        m.width = (int)s->width;
    m.small_stem = s->small_stem;
    m.no_aux = s->no_aux;
    m.dropout = library_rate(s->drop);
    m.stochastic_depth = library_rate(s->drop_path);
    m.zero_init_residual = s->zero_init_residual;
    if (!strcmp(s->model, "mlp")) {
        mlp_sizes(s, sizes);
        m.sizes = sizes;
    }
    return ddp_model_new(s->model, &m);
}

static int ignore_layer(const struct ddp_layer_info *info, void *arg)
{
    (void)info;
    (void)arg;
    return 0;
}

static bool fits(ddp_chain_t *c, int64_t size)
{
    struct ddp_shape in = {(int)size, (int)size, 3};

    return ddp_chain_inspect(c, in, DDP_F32, ignore_layer, NULL) == 0;
}

/* Images too small vanish somewhere in the network: say from which size on they
 * do not. */
static int check_size(const struct settings *s, ddp_chain_t *c)
{
    enum { LARGEST = 1024 };

    if (fits(c, s->img_size))
        return OPTS_GO;
    for (int64_t least = s->img_size + 1; least <= LARGEST; least++)
        if (fits(c, least)) {
            app_say("--img-size %lld is too small for %s, which needs images "
                    "of %lldx%lld or larger",
                    (long long)s->img_size, s->model, (long long)least,
                    (long long)least);
            return EXIT_USAGE;
        }
    fits(c, s->img_size);
    return app_fail(ddp_errcode());
}

int setup_network(const struct settings *s, ddp_chain_t **c)
{
    if (!(*c = setup_model(s)))
        return app_fail(ddp_errcode());
    return check_size(s, *c);
}

enum ddp_dtype setup_dtype(const struct settings *s)
{
    static const enum ddp_dtype type[] = {DDP_F32, DDP_BF16, DDP_F16};

    return type[s->dtype];
}

const char *setup_dtype_name(const struct settings *s)
{
    static const char *const name[] = {
        [DDP_F32] = "f32", [DDP_BF16] = "bf16", [DDP_F16] = "f16"};

    return name[setup_dtype(s)];
}

enum ddp_tta setup_tta(const struct settings *s)
{
    return s->tta ? DDP_TTA_FLIP : DDP_TTA_NONE;
}

void setup_evaluation(const struct settings *s, struct ddp_evaluate_config *c)
{
    ddp_evaluate_config_init(c);
    c->sub_batch = (int)s->sub_batch;
    c->dtype = setup_dtype(s);
    c->tta = setup_tta(s);
}

size_t setup_params(const ddp_chain_t *c)
{
    struct ddp_param_info p;
    size_t sum = 0;

    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++)
        if (p.role != DDP_RUNNING)
            sum += p.len;
    return sum;
}
