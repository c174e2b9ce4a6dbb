/* report_files.c - the curves of a report as files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "common/app.h"
#include "common/app_log.h"
#include "common/opt.h"
#include "chart_svg.h"
#include "converter.h"
#include "output.h"
#include "report_files.h"

static void write_chart(const void *chart, FILE *f)
{
    chart_svg(chart, f);
}

/* A path cannot be taken for an option: it has a folder. */
static int run_converter(char *svg, char *png)
{
    static const struct converter rsvg = {"rsvg-convert", "PNG files",
                                          "librsvg2-bin", "--svg"};
    char *const argv[] = {"rsvg-convert", "--zoom", "2", svg,
                          "--output",     png,      NULL};

    return converter_run(&rsvg, argv);
}

static int convert(const char *dir, const char *id)
{
    char *svg = app_path(dir, "%s.svg", id), *png = app_path(dir, "%s.png", id);
    int rc = svg && png ? run_converter(svg, png) : EXIT_MEMORY;

    if (rc == 0)
        app_print("wrote %s\n", png);
    free(svg);
    free(png);
    return rc;
}

static int write_file(const struct chart *c, const char *dir)
{
    char *name = NULL;
    int rc;

    if (asprintf(&name, "%s.svg", c->id) < 0)
        return EXIT_MEMORY;
    rc = output_write(dir, name, write_chart, c);
    if (rc == OPTS_GO)
        app_print("wrote %s/%s\n", dir, name);
    free(name);
    return rc == OPTS_GO ? 0 : rc;
}

int report_files(const struct report *r, const char *dir, bool png)
{
    struct chart *chart = calloc(REPORT_CHARTS, sizeof(*chart));
    int n = chart ? report_charts(r, chart) : 0;
    int rc = chart ? app_make_dir(dir) : EXIT_MEMORY;

    for (int i = 0; rc == 0 && i < n; i++)
        if (chart[i].count && (rc = write_file(&chart[i], dir)) == 0 && png)
            rc = convert(dir, chart[i].id);
    free(chart);
    return rc;
}
