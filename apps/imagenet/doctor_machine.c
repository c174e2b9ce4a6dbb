/* doctor_machine.c - what the machine is, for "imagenet doctor"
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <hwloc.h>

#include "ddp.h"

#include "common/app.h"
#include "common/cores.h"
#include "doctor_machine.h"

/* ---- processor ---------------------------------------------------------- */

static int count(hwloc_topology_t t, hwloc_obj_type_t type)
{
    int n = hwloc_get_nbobjs_by_type(t, type);

    return n > 0 ? n : 0;
}

static void print_processor(hwloc_topology_t t)
{
    hwloc_obj_t top = hwloc_get_obj_by_type(t, HWLOC_OBJ_PACKAGE, 0);
    const char *model =
        top ? hwloc_obj_get_info_by_name(top, "CPUModel") : NULL;

    if (!model)
        model = hwloc_obj_get_info_by_name(hwloc_get_root_obj(t), "CPUModel");
    report_line("processor", "%d x %s", top ? count(t, HWLOC_OBJ_PACKAGE) : 1,
                model ? model : "unknown model");
    report_line("cores",
                "%d may be used (affinity and CPU quota), %d are there, with "
                "%d hyper-threads",
                app_cores(), count(t, HWLOC_OBJ_CORE), count(t, HWLOC_OBJ_PU));
    report_line("numa nodes", "%d", count(t, HWLOC_OBJ_NUMANODE));
}

static void print_caches(hwloc_topology_t t)
{
    static const struct {
        const char *name;
        hwloc_obj_type_t type;
    } level[] = {{"L1", HWLOC_OBJ_L1CACHE},
                 {"L2", HWLOC_OBJ_L2CACHE},
                 {"L3", HWLOC_OBJ_L3CACHE}};
    char text[160] = "", size[32];

    for (size_t i = 0; i < sizeof(level) / sizeof(*level); i++) {
        hwloc_obj_t c = hwloc_get_obj_by_type(t, level[i].type, 0);
        size_t n = strlen(text);

        if (c)
            snprintf(text + n, sizeof(text) - n, "%s%d x %s of %s",
                     n ? ", " : "", count(t, level[i].type), level[i].name,
                     report_bytes((double)c->attr->cache.size, size));
    }
    report_line("caches", "%s", *text ? text : "unknown");
}

/* ---- huge pages --------------------------------------------------------- */

/* The choice that a file marks, as in "always [madvise] never". */
static const char *chosen(const char *path, char line[128])
{
    FILE *f = fopen(path, "re");
    char *begin = f && fgets(line, 128, f) ? strchr(line, '[') : NULL;
    char *end = begin ? strchr(begin, ']') : NULL;

    if (end)
        *end = '\0';
    if (f)
        fclose(f);
    return end ? begin + 1 : "unknown";
}

static void print_huge_pages(void)
{
    char own[128], shared[128];

    report_line(
        "huge pages", "%s for a process's memory, %s for what ranks share",
        chosen("/sys/kernel/mm/transparent_hugepage/enabled", own),
        chosen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", shared));
}

void doctor_machine(struct report *r)
{
    hwloc_topology_t t;
    struct utsname u;

    if (uname(&u) == 0)
        report_line("machine", "%s, %s %s, %s", u.nodename, u.sysname,
                    u.release, u.machine);
    if (hwloc_topology_init(&t) < 0) {
        report_warning(r, "hwloc cannot read the topology of this machine");
        return;
    }
    if (hwloc_topology_load(t) < 0) {
        report_warning(r, "hwloc cannot read the topology of this machine");
    } else {
        print_processor(t);
        print_caches(t);
    }
    hwloc_topology_destroy(t);
    print_huge_pages();
}

/* ---- bf16 --------------------------------------------------------------- */

/* Whether a line of /proc/cpuinfo has the word. */
static bool has_flag(const char *line, const char *flag)
{
    size_t len = strlen(flag);

    for (const char *s = line; (s = strstr(s, flag)); s += len)
        if (s > line && s[-1] == ' ' && strchr(" \n", s[len]))
            return true;
    return false;
}

bool doctor_bf16(void)
{
    static const char *const flag[] = {"amx_bf16", "avx512_bf16", "bf16"};
    FILE *f = fopen("/proc/cpuinfo", "re");
    const char *found = NULL;
    char *line = NULL;
    size_t room = 0;

    while (f && !found && getline(&line, &room, f) > 0)
        for (int i = 0; i < 3 && !found; i++)
            if (!strncmp(line, "flags", 5) || !strncmp(line, "Features", 8))
                found = has_flag(line, flag[i]) ? flag[i] : NULL;
    if (f)
        fclose(f);
    free(line);
    report_line("bf16", "%s",
                found ? found
                      : "not by this processor: CPU workers need --dtype f32");
    return found != NULL;
}

/* ---- GPUs --------------------------------------------------------------- */

/* A number in a file of a device: 0 if there is none. */
static unsigned long read_id(const char *device, const char *name)
{
    unsigned long id = 0;
    char path[512];
    FILE *f;

    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", device, name);
    if ((f = fopen(path, "re"))) {
        if (fscanf(f, "%lx", &id) != 1)
            id = 0;
        fclose(f);
    }
    return id;
}

/* NVIDIA's display and 3D controllers on the PCI bus. */
static int nvidia_devices(void)
{
    enum { NVIDIA = 0x10de, DISPLAY = 3 };
    DIR *d = opendir("/sys/bus/pci/devices");
    struct dirent *e;
    int n = 0;

    while (d && (e = readdir(d)))
        n += read_id(e->d_name, "vendor") == NVIDIA &&
             read_id(e->d_name, "class") >> 16 == DISPLAY;
    if (d)
        closedir(d);
    return n;
}

/* Devices that a container was given have no entry on the bus. */
static int nvidia_nodes(void)
{
    DIR *d = opendir("/dev");
    struct dirent *e;
    int n = 0, number, end;

    while (d && (e = readdir(d)))
        n += sscanf(e->d_name, "nvidia%d%n", &number, &end) == 1 &&
             !e->d_name[end];
    if (d)
        closedir(d);
    return n;
}

void doctor_gpus(struct report *r, int used, const char *why)
{
    int bus = nvidia_devices(), nodes = nvidia_nodes();
    int there = bus > nodes ? bus : nodes;

    report_line("gpus", "%d NVIDIA, of which %d are used", there, used);
    if (*why)
        report_warning(r, "GPUs not used: %s", why);
    else if (there > used)
#ifdef HAVE_CUDA
        report_warning(r,
                       "%d of %d GPUs are used: CUDA_VISIBLE_DEVICES, "
                       "STARPU_NCUDA and STARPU_WORKERS_CUDAID choose them",
                       used, there);
#else
        report_warning(r, "GPUs not used: this libddp was built without CUDA "
                          "(docs/gpu.md)");
#endif
}
