/* options.c - the options of both programs: ddp-predict passes them on
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "predict.h"

#define OPT_STRUCT struct predict_settings
#include "common/opt_rows.h"

const char *const predict_dtypes[] = {"f32", "bf16", "f16", NULL};

static const struct opt_group training = {
    "Training",
    (const struct opt[]){
        TEXT("model", model, "NAME", "resnet50", "network"),
        INT("img-size", img_size, "224", 1, 4096,
            "side of the square images, in pixels"),
        FLAG("small-stem", small_stem,
             "begin with a 3x3 convolution and no pooling"),
        INT("classes", classes, "1000", 2, 1 << 24, "outputs of the network",
            .alias = "num-classes"),
        CHOICE("dtype", dtype, "TYPE", "bf16", predict_dtypes,
               "type of the activations"),
        INT("sub-batch", sub_batch, "64", 1, 1 << 20,
            "images processed together"),
        INT("lanes", lanes, "16", 1, 1024, "gradient accumulators"),
        INT("sub-batches", sub_batches, NULL, 1, 1 << 20,
            "sub-batches of a step [as many as lanes]"),
        INT("steps", steps, "5", 1, 1e6, "steps to measure"),
        INT("skip", skip, "3", 1, 1e6, "warm-up steps before them"),
        END,
    },
};

static const struct opt_group machine = {
    "Machine",
    (const struct opt[]){
        WIDTHS("gpus", gpus, "N,...", "1,2,4,8",
               "numbers of GPUs, one machine for each, up to 16 GPUs"),
        WIDTHS("cpus", cpus, "N,...", NULL,
               "numbers of CPU workers that train instead of GPUs"),
        WIDTHS("numa", numa, "N,...", "1",
               "numbers of NUMA nodes, up to 32, that the CPU workers are on: "
               "count what they read from other nodes"),
        NUM("far", far, "1", 1, 100,
            "to read from another node takes so many times as long as --tbs "
            "says"),
        WIDTHS("slow", slow, "N,...", NULL,
               "the first GPUs take so many times as long, the others 1"),
        NUM("stall", stall, "0", 0, 1e6,
            "the first GPU stops once for so many milliseconds, in a step that "
            "is measured"),
        NUM("tflops", tflops, NULL, 1e-3, 1e6,
            "speed of convolutions on a device, in TFLOP/s [300, of a CPU "
            "worker 0.05]"),
        NUM("tbs", tbs, NULL, 1e-3, 1e3,
            "bandwidth of its memory, in TB/s [3, of a CPU worker 0.01]"),
        NUM("launch", launch, NULL, 0.1, 1e4,
            "launch time of a kernel, in microseconds [5, of a CPU worker 2]"),
        TEXT("times", times, "FILE", NULL,
             "measured times of operations, by ddp-bench calibrate; the speed "
             "is for those that FILE does not have"),
        NUM("memory", memory, "80", 1e-3, 1e5, "size of its memory, in GiB"),
        NUM("link", link, "370", 1e-3, 1e5,
            "bandwidth to and from all other GPUs, each way, in GB/s"),
        NUM("latency", latency, "5", 0, 1e6,
            "latency of a transfer between GPUs, in microseconds"),
        NUM("pcie", pcie, "50", 1e-3, 1e5,
            "bandwidth to and from main memory, each way, in GB/s"),
        NUM("pcie-latency", pcie_latency, "8", 0, 1e6,
            "latency of such a transfer, in microseconds"),
        END,
    },
};

static const struct opt_group network = {
    "Network",
    (const struct opt[]){
        WIDTHS("nodes", nodes, "N,...", NULL,
               "numbers of nodes, each with the GPUs, lanes and sub-batches "
               "above [one]"),
        NUM("net", net, "100", 1e-3, 1e5,
            "bandwidth to and from a node, each way, in Gb/s, of which 85 % "
            "carry gradients"),
        NUM("net-latency", net_latency, "5", 0, 1e6,
            "latency of a message between nodes, in microseconds"),
        NUM("net-message", net_message, "0.5", 0, 1e6,
            "what the host takes to send one and receive another, in "
            "microseconds"),
        END,
    },
};

static const struct opt_group output = {
    "Output",
    (const struct opt[]){
        FLAG("json", json,
             "print a line of JSON per machine instead of a table"),
        TEXT("trace", trace, "FILE", NULL,
             "write what the tasks of two steps did, as Chrome's trace events; "
             "of several machines, the last one's"),
        END,
    },
};

const struct opt_command predict_command = {
    .name = "ddp-predict",
    .about = "Predict how training scales over the GPUs or CPU workers of a "
             "machine you do not have.\n"
             "\n"
             "The task graph, the scheduling and the transfers are those of "
             "training, run by StarPU in SimGrid's simulated time. A kernel "
             "takes --launch plus its operations over --tflops plus its bytes "
             "over --tbs; reading images takes no time. Use it to compare "
             "machines and settings; ddp-bench train measures a real GPU.\n"
             "\n"
             "efficiency is images per second and device relative to the "
             "first machine; idle is the fraction of time in which devices run "
             "no kernel; split lanes are those whose tasks ran on several; "
             "memory is the most that a GPU held. STARPU_SCHED and other "
             "variables of StarPU apply.",
    .group = (const struct opt_group *const[]){&training, &machine, &network,
                                               &output, NULL},
};

const int *predict_counts(const struct predict_settings *s)
{
    return s->cpus[0] ? s->cpus : s->gpus;
}

const char *predict_kind(const struct predict_settings *s)
{
    return s->cpus[0] ? "CPUs" : "GPUs";
}

/* The speed that is given, or a usual one of the kind. */
static double speed(double given, const struct predict_settings *s, double gpu,
                    double cpu)
{
    return given > 0 ? given : s->cpus[0] ? cpu : gpu;
}

void predict_resolve(struct predict_settings *s)
{
    if (!s->sub_batches)
        s->sub_batches = s->lanes;
    s->tflops = speed(s->tflops, s, 300, 0.05);
    s->tbs = speed(s->tbs, s, 3, 0.01);
    s->launch = speed(s->launch, s, 5, 2);
}
