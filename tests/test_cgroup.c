/* test_cgroup.c - the limits of control groups made up for it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The files are those that Linux shows, in a folder of the test.
 */
#include "config.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/cgroup.h"
#include "tap.h"

static char root[64];

static void write_file(const char *name, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *at = path + strlen(root); (at = strchr(at + 1, '/'));
         *at = '/') {
        *at = '\0';
        mkdir(path, 0777);
    }
    if (!(f = fopen(path, "w")) || fputs(text, f) < 0 || fclose(f))
        bail_out("cannot write %s", path);
}

static int quota(void)
{
    char groups[128];

    snprintf(groups, sizeof(groups), "%s/groups", root);
    return ddp__cpu_quota(groups, root);
}

static void test_version_2(void)
{
    write_file("groups", "0::/machine/one\n");
    is_int(quota(), 0, "no file, no quota");
    write_file("machine/one/cpu.max", "max 100000\n");
    is_int(quota(), 0, "max: no quota");
    write_file("machine/one/cpu.max", "300000 100000\n");
    is_int(quota(), 3, "300 ms of 100 ms are 3 processors");
    write_file("machine/one/cpu.max", "250000 100000\n");
    is_int(quota(), 3, "half a processor counts as one");
    write_file("machine/cpu.max", "100000 50000\n");
    is_int(quota(), 2, "the group above has less");
    write_file("cpu.max", "10000 100000\n");
    is_int(quota(), 1, "so has the root, which a container sees as its own");
    write_file("groups", "0::/outside/of/the/container\n");
    is_int(quota(), 1, "also under a path that is not there");
}

static void test_version_1(void)
{
    write_file("groups", "9:name=systemd:/\n4:memory:/b\n2:cpuacct,cpu:/b/c\n"
                         "0::/\n");
    write_file("cpu.max", "max 100000\n");
    is_int(quota(), 0, "version 1 without files");
    write_file("cpu/b/c/cpu.cfs_quota_us", "-1\n");
    write_file("cpu/b/c/cpu.cfs_period_us", "100000\n");
    is_int(quota(), 0, "-1: no quota");
    write_file("cpu/b/cpu.cfs_quota_us", "400000\n");
    write_file("cpu/b/cpu.cfs_period_us", "100000\n");
    is_int(quota(), 4, "the quota of the group above");
    write_file("cpu.max", "200000 100000\n");
    is_int(quota(), 2, "both versions mounted: the lesser");
}

static double memory(void)
{
    char groups[128];

    snprintf(groups, sizeof(groups), "%s/groups", root);
    return ddp__memory_limit(groups, root);
}

static void test_memory(void)
{
    write_file("groups", "0::/m/job\n");
    ok(isinf(memory()), "no file, no limit of memory");
    write_file("m/job/memory.max", "max\n");
    ok(isinf(memory()), "max: no limit");
    write_file("m/job/memory.max", "8589934592\n");
    ok(memory() == 0x1p33, "8 GiB");
    write_file("m/memory.max", "1073741824\n");
    ok(memory() == 0x1p30, "the group above has less");
    write_file("m/memory.max", "garbage\n");
    ok(memory() == 0x1p33, "a damaged file is no limit");
    write_file("groups", "4:memory:/job\n0::/\n");
    write_file("memory/job/memory.limit_in_bytes", "9223372036854771712\n");
    ok(isinf(memory()), "version 1 without a limit");
    write_file("memory/job/memory.limit_in_bytes", "4294967296\n");
    ok(memory() == 0x1p32, "version 1: 4 GiB");
}

static void test_damage(void)
{
    static const char *const bad[] = {"",         "\n",         "garbage\n",
                                      "100000\n", "100000 0\n", "-5 100000\n",
                                      "nan nan\n"};

    write_file("groups", "0::/x\nnonsense\n1:cpu\n::\n\n");
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        write_file("cpu.max", bad[i]);
        is_int(quota(), 0, "damaged file %d is no quota", (int)i);
    }
    is_int(ddp__cpu_quota("/nonexistent", root), 0, "nor is a missing one");
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    char command[128];

    snprintf(root, sizeof(root), "%.32s/ddp-quota-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(root))
        bail_out("cannot make %s", root);
    test_version_2();
    test_version_1();
    test_memory();
    test_damage();
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    if (system(command))
        diag("%s is left behind", root);
    return done_testing();
}
