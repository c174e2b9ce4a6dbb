/* cgroup.h - what a container may use of the machine
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CGROUP_H
#define DDP_CGROUP_H

/* The CPU quota of this process's control group (version 1 or 2) and of all
 * above it, in processors, rounded up; 0: there is none.
 * groups   "/proc/self/cgroup", or a file like it
 * root     "/sys/fs/cgroup", where these groups are mounted */
int ddp__cpu_quota(const char *groups, const char *root);

/* The memory limit, in bytes, likewise; INFINITY: there is none. */
double ddp__memory_limit(const char *groups, const char *root);

#endif
