/* step_graph.c - the tasks of a step as a graph: --graph FILE
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/app.h"
#include "common/app_log.h"
#include "converter.h"
#include "step_graph.h"

static bool is_drawn(const char *file)
{
    size_t len = strlen(file);

    return len > 4 && !strcmp(file + len - 4, ".svg");
}

char *step_graph_dot(const char *file)
{
    char *dot = strdup(file);

    if (dot && is_drawn(file))
        memcpy(dot + strlen(dot) - 3, "dot", 3);
    return dot;
}

static int run_dot(char *file, char *dot)
{
    static const struct converter graphviz = {"dot", "drawings of graphs",
                                              "graphviz", "--graph FILE.dot"};
    char *const argv[] = {"dot", "-Tsvg", dot, "-o", file, NULL};

    return converter_run(&graphviz, argv);
}

int step_graph_draw(char *file, char *dot)
{
    int rc;

    if (!is_drawn(file) || access(dot, R_OK) < 0)
        return 0;
    if ((rc = run_dot(file, dot)) == 0)
        app_print("wrote %s\n", file);
    else
        app_say("the graph is in %s", dot);
    return rc;
}
