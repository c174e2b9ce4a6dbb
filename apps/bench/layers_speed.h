/* layers_speed.h - how fast training is if oneDNN's layers take all of its time
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_LAYERS_SPEED_H
#define BENCH_LAYERS_SPEED_H

#include <stdint.h>

#include "settings.h"

/* Images a second if the workers ran nothing but convolutions and dense layers,
 * in steps of so many images, without our Winograd convolutions and products of
 * integers: *img; 0: not known.  OPTS_GO, or an exit code after a message. */
int layers_speed(const struct bench_settings *s, int64_t batch, double *img);

#endif
