/* machine.c - a machine as the files that StarPU would write after measuring it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Memory 0 is the main one, memory i that of GPU i - 1.  Every GPU has its
 * own link to main memory and one to a switch that all GPUs share; all
 * transfers to and from a GPU share its link to the switch.
 */
#include "config.h"
#include <math.h>
#include <stdlib.h>

#include "common/app.h"
#include "predict.h"

enum { CPUS = 4 };

/* ---- StarPU's tables: from each memory to each -------------------------- */

static double bandwidth(const struct predict_settings *s, int from, int to)
{
    return from == to ? 0 : 1e3 * (from && to ? s->link : s->pcie); /* MB/s */
}

static double latency(const struct predict_settings *s, int from, int to)
{
    return from == to ? 0 : from && to ? s->latency : s->pcie_latency;
}

/* StarPU ignores the last row and the last column. */
static void write_table(FILE *f, const struct predict_settings *s, int gpus,
                        double (*entry)(const struct predict_settings *s,
                                        int from, int to))
{
    for (int from = 0; from <= gpus + 1; from++) {
        for (int to = 0; to <= gpus + 1; to++)
            fprintf(f, "%e\t",
                    from > gpus || to > gpus ? NAN : entry(s, from, to));
        fprintf(f, "\n");
    }
}

static void write_bandwidth(FILE *f, const struct predict_settings *s, int gpus)
{
    write_table(f, s, gpus, bandwidth);
}

static void write_latency(FILE *f, const struct predict_settings *s, int gpus)
{
    write_table(f, s, gpus, latency);
}

/* By this file StarPU finds the others; it holds what they were measured with.
 */
static void write_config(FILE *f, const struct predict_settings *s, int gpus)
{
    (void)s;
    fprintf(f, "%d # Number of CPUs\n%d # Number of CUDA devices\n", CPUS,
            gpus);
}

/* ---- SimGrid's platform ------------------------------------------------- */

static void write_hosts(FILE *f, const struct predict_settings *s, int gpus)
{
    fprintf(f, "<host id=\"MAIN\" speed=\"1f\"/>\n"
               "<host id=\"RAM\" speed=\"1f\"/>\n");
    for (int i = 0; i < CPUS; i++)
        fprintf(f, "<host id=\"CPU%d\" speed=\"1Gf\"/>\n", i);
    for (int i = 0; i < gpus; i++)
        fprintf(f,
                "<host id=\"CUDA%d\" speed=\"1Gf\">\n"
                "  <prop id=\"memsize\" value=\"%.0f\"/>\n"
                "  <prop id=\"memcpy_peer\" value=\"1\"/>\n"
                "</host>\n",
                i, s->memory * (1 << 30));
}

static void write_link(FILE *f, const char *name, int gpu, double gbs,
                       double us)
{
    fprintf(f, "<link id=\"%s-%d\" bandwidth=\"%.0fBps\" latency=\"%.9fs\"/>\n",
            name, gpu, gbs * 1e9, us * 1e-6);
}

static void write_links(FILE *f, const struct predict_settings *s, int gpus)
{
    for (int i = 0; i < gpus; i++) {
        write_link(f, "load", i, s->pcie, s->pcie_latency);
        write_link(f, "store", i, s->pcie, s->pcie_latency);
        write_link(f, "out", i, s->link, s->latency);
        write_link(f, "in", i, s->link, 0);
    }
}

static void write_routes(FILE *f, int gpus)
{
    for (int i = 0; i < gpus; i++)
        fprintf(f,
                "<route src=\"RAM\" dst=\"CUDA%d\" symmetrical=\"NO\">"
                "<link_ctn id=\"load-%d\"/></route>\n"
                "<route src=\"CUDA%d\" dst=\"RAM\" symmetrical=\"NO\">"
                "<link_ctn id=\"store-%d\"/></route>\n",
                i, i, i, i);
    for (int i = 0; i < gpus; i++)
        for (int j = 0; j < gpus; j++)
            if (i != j)
                fprintf(f,
                        "<route src=\"CUDA%d\" dst=\"CUDA%d\" "
                        "symmetrical=\"NO\"><link_ctn id=\"out-%d\"/>"
                        "<link_ctn id=\"in-%d\"/></route>\n",
                        i, j, i, j);
}

/* The factors of SimGrid's model of TCP do not hold for a bus. */
static void write_platform(FILE *f, const struct predict_settings *s, int gpus)
{
    fprintf(f, "<?xml version='1.0'?>\n"
               "<!DOCTYPE platform SYSTEM "
               "\"https://simgrid.org/simgrid.dtd\">\n"
               "<platform version=\"4\">\n"
               "<config id=\"General\">\n"
               "  <prop id=\"network/TCP-gamma\" value=\"-1\"/>\n"
               "  <prop id=\"network/latency-factor\" value=\"1\"/>\n"
               "  <prop id=\"network/bandwidth-factor\" value=\"1\"/>\n"
               "  <prop id=\"network/weight-S\" value=\"0.0\"/>\n"
               "  <prop id=\"network/crosstraffic\" value=\"0\"/>\n"
               "</config>\n"
               "<zone id=\"machine\" routing=\"Full\">\n");
    write_hosts(f, s, gpus);
    write_links(f, s, gpus);
    write_routes(f, gpus);
    fprintf(f, "</zone>\n</platform>\n");
}

/* ---- all of it ---------------------------------------------------------- */

static int write_file(const char *dir, const char *kind,
                      void (*write)(FILE *f, const struct predict_settings *s,
                                    int gpus),
                      const struct predict_settings *s, int gpus)
{
    char *path = app_path(dir, "bus/%s.%s", PREDICT_HOST, kind);
    FILE *f = path ? fopen(path, "w") : NULL;
    bool good = f != NULL;

    if (good)
        write(f, s, gpus);
    if (f && fclose(f) != 0)
        good = false;
    if (!good)
        app_say("cannot write %s", path ? path : kind);
    free(path);
    return good ? 0 : EXIT_WRITE;
}

int predict_machine(const char *dir, const struct predict_settings *s, int gpus)
{
    char *bus = app_path(dir, "bus");
    int rc = bus ? app_make_dir(bus) : EXIT_MEMORY;

    free(bus);
    if (rc == 0 &&
        (rc = write_file(dir, "bandwidth", write_bandwidth, s, gpus)) == 0 &&
        (rc = write_file(dir, "latency", write_latency, s, gpus)) == 0 &&
        (rc = write_file(dir, "config", write_config, s, gpus)) == 0)
        rc = write_file(dir, "platform.v4.xml", write_platform, s, gpus);
    return rc;
}
