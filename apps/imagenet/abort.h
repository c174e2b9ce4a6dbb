/* abort.h - the last sentence of a process that is aborted
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef ABORT_H
#define ABORT_H

/* From now on abort() first says in which thread that was, and which checkpoint
 * of this folder is the latest. */
void abort_notes(const char *folder);

#endif
