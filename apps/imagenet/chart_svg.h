/* chart_svg.h - a chart as a file of its own
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef CHART_SVG_H
#define CHART_SVG_H

#include "chart.h"

/* An SVG document with title, legend and curves, for papers and slides: black
 * on white, in colours that programs other than browsers know too. */
void chart_svg(const struct chart *c, FILE *f);

#endif
