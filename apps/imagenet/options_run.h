/* options_run.h - the options of how long a run is, and what it leaves
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef OPTIONS_RUN_H
#define OPTIONS_RUN_H

#include "common/opt.h"

extern const struct opt_group options_length_group, options_output_group;
extern const struct opt_group options_tracing_group, options_checkpoints_group;

#endif
