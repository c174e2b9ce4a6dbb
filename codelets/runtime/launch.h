/* launch.h - whether this process was started together with others
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_LAUNCH_H
#define DDP_LAUNCH_H

#include <stdbool.h>

/* Sets *ranks to whether MPI knows the others.  DDP_EINVAL: something has
 * started several processes, each of which would train alone. */
int ddp__launch(bool *ranks);

#endif
