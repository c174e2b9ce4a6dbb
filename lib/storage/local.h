/* local.h - the storage of this machine
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_LOCAL_H
#define DDP_LOCAL_H

#include "storage/storage.h"

struct ddp__storage *ddp__local_open(const char *dir);

#endif
