/* interrupt.h - why a run should end early: a signal, or a time limit
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef INTERRUPT_H
#define INTERRUPT_H

#include <stdbool.h>

/* From now on the first SIGINT, SIGTERM, SIGHUP (unless it is ignored, as by
 * nohup), SIGUSR1 or SIGUSR2 is only noted; a second one ends the program, and
 * so do grace_s seconds (0: they do not), by SIGALRM.  After ddp_init(): StarPU
 * installs its own handlers.  The first one calls call(arg) in its handler, if
 * that is not NULL. */
void interrupt_catch(unsigned grace_s, void (*call)(void *arg), void *arg);

/* Before ddp_finish().  The exit code of a rank is decided: SIGTERM, by which a
 * launcher ends the ranks that are left when the first one has ended, must not
 * change it. */
void interrupt_finish(void);

/* End limit_s seconds after app_start(), saving included, which is expected to
 * take save_s.  limit_s 0: no limit. */
void interrupt_limit(double limit_s, double save_s);

/* How long the last step took. */
void interrupt_stepped(double seconds);

/* Is it time to save and exit?  Once true, always true. */
bool interrupt_wanted(void);

/* The reason: "SIGTERM", "--time-limit". */
const char *interrupt_reason(void);

#endif
