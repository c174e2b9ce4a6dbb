/* module.h - parts of libddp that are opened when they are needed
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BASE_MODULE_H
#define DDP_BASE_MODULE_H

/* Open a module by its file's name: in the folder that DDP_MODULE_DIR names,
 * else next to the library or in libddp/ there.  NULL: dlerror() tells why. */
void *ddp__module_open(const char *name);

#endif
