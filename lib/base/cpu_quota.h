/* cpu_quota.h - how much processor time a container may use
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_QUOTA_H
#define DDP_CPU_QUOTA_H

/* The CPU quota of this process's control group (version 1 or 2) and of all
 * above it, in processors, rounded up; 0: there is none.
 * groups   "/proc/self/cgroup", or a file like it
 * root     "/sys/fs/cgroup", where these groups are mounted */
int ddp__cpu_quota(const char *groups, const char *root);

#endif
