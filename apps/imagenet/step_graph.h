/* step_graph.h - the tasks of a step as a graph: --graph FILE
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef STEP_GRAPH_H
#define STEP_GRAPH_H

/* The file that has it for Graphviz, to be freed: FILE, or FILE.dot if FILE.svg
 * is to be drawn.  NULL: no memory. */
char *step_graph_dot(const char *file);

/* Draw FILE.svg, if that is what is asked for and the run has made a graph.
 * 0 or an exit code. */
int step_graph_draw(char *file, char *dot);

#endif
