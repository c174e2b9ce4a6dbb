/* act.h - activations and their derivatives
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_REF_ACT_H
#define DDP_REF_ACT_H

#include "ddp.h"

/* act(x), and its derivative given s: y or x, as ddp__act_from_y() says. */
double ddp__ref_act(enum ddp_act act, double x);
double ddp__ref_act_slope(enum ddp_act act, double s);

#endif
