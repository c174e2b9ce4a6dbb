/* export.c - "imagenet export": a network with weights as ONNX
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <sys/stat.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "export.h"
#include "options.h"
#include "progress.h"
#include "setup_network.h"
#include "weights.h"
#include "weights_settings.h"

static long long size_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (long long)st.st_size : 0;
}

static void count_bytes(int64_t done, int64_t count, void *work)
{
    work_count(done / 1024, count / 1024, work);
}

static int export_model(ddp_chain_t *c, const struct settings *s)
{
    struct ddp_shape in = {(int)s->img_size, (int)s->img_size, 3};
    struct work work;
    int rc;

    if (s->weights && (rc = weights_load(s, c, false)) != OPTS_GO)
        return rc;
    work_begin(&work, "export", false);
    work.unit = "KiB";
    rc = ddp_chain_export_onnx(c, in, s->output, count_bytes, &work);
    work_clear(&work);
    if (rc < 0)
        return app_fail(rc);
    printf("export model=%s input=Nx3x%dx%d bytes=%lld file=%s\n", s->model,
           in.h, in.w, size_of(s->output), s->output);
    if (!s->weights)
        app_say("no --weights: the exported weights are random");
    return 0;
}

int export_run(struct opts *o, struct settings *s)
{
    ddp_chain_t *c;
    int rc;

    if (!s->output) {
        app_say("the output file is missing: imagenet export MODEL.onnx");
        return EXIT_USAGE;
    }
    if ((rc = weights_check(o, s)) != OPTS_GO ||
        (s->weights &&
         (rc = weights_settings_read(o, s, s->quiet ? NULL : stdout, NULL)) !=
             OPTS_GO) ||
        (rc = setup_check_model(o, s)) != OPTS_GO)
        return rc;
    if (!s->img_size)
        s->img_size = ddp_model_size(s->model);
    if ((rc = setup_network(s, &c)) == OPTS_GO)
        rc = export_model(c, s);
    ddp_chain_free(c);
    return rc;
}
