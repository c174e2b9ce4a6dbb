/* layers_speed.h - how fast oneDNN's convolutions and dense layers alone would
 * be SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_LAYERS_SPEED_H
#define BENCH_LAYERS_SPEED_H

#include <stdint.h>

#include "settings.h"

/* Images a second if the workers did nothing else, in steps of so many images
 * and without our Winograd convolutions: *img; 0: not known.  0, or one of the
 * library's codes after a message. */
int layers_speed(const struct bench_settings *s, int64_t batch, double *img);

#endif
