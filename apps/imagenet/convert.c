/* convert.c - "imagenet convert": a file of weights as another
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "convert.h"
#include "options.h"
#include "setup_network.h"

int convert_run(struct opts *o, struct settings *s)
{
    struct ddp_convert_options c;
    struct ddp_convert_report r;
    char **file = s->input;
    int rc;

    if (!file || !file[1] || file[2]) {
        opt_complain(o, "expected two files: IN and OUT");
        return EXIT_USAGE;
    }
    ddp_convert_options_init(&c);
    c.dtype = setup_dtype(s);
    c.strip_prefix = s->strip_prefix;
    c.add_prefix = s->add_prefix;
    c.drop = s->drop_names;
    if ((rc = ddp_weights_convert(file[0], file[1], &c, &r)) < 0)
        return app_fail(rc);
    printf("converted %s written=%d dropped=%d renamed=%d\n", file[1],
           r.written, r.dropped, r.renamed);
    return 0;
}
