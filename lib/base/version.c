/* version.c - the library's version as a number
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "ddp.h"

/* configure.ac has the number; ddp.h has to repeat it, since it is installed as
 * it is. */
_Static_assert(DDP_VERSION_NUMBER == PACKAGE_VERSION_NUMBER,
               "DDP_VERSION_... of ddp.h differ from AC_INIT of configure.ac");

int ddp_version_number(void)
{
    return DDP_VERSION_NUMBER;
}
