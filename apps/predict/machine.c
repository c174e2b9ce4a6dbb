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

enum { HOST_CPUS = 4 }; /* of a machine with GPUs */

struct machine {
    const struct predict_settings *s;
    int cpus, gpus;
};

/* ---- StarPU's tables: from each memory to each -------------------------- */

static double bandwidth(const struct machine *m, int from, int to)
{
    return from == to ? 0
                      : 1e3 * (from && to ? m->s->link : m->s->pcie); /* MB/s */
}

static double latency(const struct machine *m, int from, int to)
{
    return from == to ? 0 : from && to ? m->s->latency : m->s->pcie_latency;
}

/* StarPU ignores the last row and the last column. */
static void write_table(FILE *f, const struct machine *m,
                        double (*entry)(const struct machine *m, int from,
                                        int to))
{
    for (int from = 0; from <= m->gpus + 1; from++) {
        for (int to = 0; to <= m->gpus + 1; to++)
            fprintf(f, "%e\t",
                    from > m->gpus || to > m->gpus ? NAN : entry(m, from, to));
        fprintf(f, "\n");
    }
}

static void write_bandwidth(FILE *f, const struct machine *m)
{
    write_table(f, m, bandwidth);
}

static void write_latency(FILE *f, const struct machine *m)
{
    write_table(f, m, latency);
}

/* By this file StarPU finds the others; it holds what they were measured with.
 */
static void write_config(FILE *f, const struct machine *m)
{
    fprintf(f, "%d # Number of CPUs\n%d # Number of CUDA devices\n", m->cpus,
            m->gpus);
}

/* ---- SimGrid's platform ------------------------------------------------- */

static void write_hosts(FILE *f, const struct machine *m)
{
    fprintf(f, "<host id=\"MAIN\" speed=\"1f\"/>\n"
               "<host id=\"RAM\" speed=\"1f\"/>\n");
    for (int i = 0; i < m->cpus; i++)
        fprintf(f, "<host id=\"CPU%d\" speed=\"1Gf\"/>\n", i);
    for (int i = 0; i < m->gpus; i++)
        fprintf(f,
                "<host id=\"CUDA%d\" speed=\"1Gf\">\n"
                "  <prop id=\"memsize\" value=\"%.0f\"/>\n"
                "  <prop id=\"memcpy_peer\" value=\"1\"/>\n"
                "</host>\n",
                i, m->s->memory * (1 << 30));
}

static void write_link(FILE *f, const char *name, int gpu, double gbs,
                       double us)
{
    fprintf(f, "<link id=\"%s-%d\" bandwidth=\"%.0fBps\" latency=\"%.9fs\"/>\n",
            name, gpu, gbs * 1e9, us * 1e-6);
}

static void write_links(FILE *f, const struct machine *m)
{
    for (int i = 0; i < m->gpus; i++) {
        write_link(f, "load", i, m->s->pcie, m->s->pcie_latency);
        write_link(f, "store", i, m->s->pcie, m->s->pcie_latency);
        write_link(f, "out", i, m->s->link, m->s->latency);
        write_link(f, "in", i, m->s->link, 0);
    }
}

static void write_routes(FILE *f, const struct machine *m)
{
    for (int i = 0; i < m->gpus; i++)
        fprintf(f,
                "<route src=\"RAM\" dst=\"CUDA%d\" symmetrical=\"NO\">"
                "<link_ctn id=\"load-%d\"/></route>\n"
                "<route src=\"CUDA%d\" dst=\"RAM\" symmetrical=\"NO\">"
                "<link_ctn id=\"store-%d\"/></route>\n",
                i, i, i, i);
    for (int i = 0; i < m->gpus; i++)
        for (int j = 0; j < m->gpus; j++)
            if (i != j)
                fprintf(f,
                        "<route src=\"CUDA%d\" dst=\"CUDA%d\" "
                        "symmetrical=\"NO\"><link_ctn id=\"out-%d\"/>"
                        "<link_ctn id=\"in-%d\"/></route>\n",
                        i, j, i, j);
}

/* The factors of SimGrid's model of TCP do not hold for a bus. */
static void write_platform(FILE *f, const struct machine *m)
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
    write_hosts(f, m);
    write_links(f, m);
    write_routes(f, m);
    fprintf(f, "</zone>\n</platform>\n");
}

/* ---- all of it ---------------------------------------------------------- */

static int write_file(const char *dir, const char *kind,
                      void (*write)(FILE *f, const struct machine *m),
                      const struct machine *m)
{
    char *path = app_path(dir, "bus/%s.%s", PREDICT_HOST, kind);
    FILE *f = path ? fopen(path, "w") : NULL;
    bool good = f != NULL;

    if (good)
        write(f, m);
    if (f && fclose(f) != 0)
        good = false;
    if (!good)
        app_say("cannot write %s", path ? path : kind);
    free(path);
    return good ? 0 : EXIT_WRITE;
}

int predict_machine(const char *dir, const struct predict_settings *s,
                    int devices)
{
    bool cpus = s->cpus[0] > 0;
    const struct machine machine = {s, cpus ? devices : HOST_CPUS,
                                    cpus ? 0 : devices},
                         *m = &machine;
    char *bus = app_path(dir, "bus");
    int rc = bus ? app_make_dir(bus) : EXIT_MEMORY;

    free(bus);
    if (rc == 0 &&
        (rc = write_file(dir, "bandwidth", write_bandwidth, m)) == 0 &&
        (rc = write_file(dir, "latency", write_latency, m)) == 0 &&
        (rc = write_file(dir, "config", write_config, m)) == 0)
        rc = write_file(dir, "platform.v4.xml", write_platform, m);
    return rc;
}
