/* options.c - the options of both programs: ddp-predict hands them on
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
        INT("classes", classes, "1000", 2, 1 << 24, "outputs of the network",
            .alias = "num-classes"),
        CHOICE("dtype", dtype, "TYPE", "bf16", predict_dtypes,
               "what activations are computed in"),
        INT("sub-batch", sub_batch, "64", 1, 1 << 20,
            "images that go through the network together"),
        INT("lanes", lanes, "16", 1, 1024,
            "gradient accumulators; a step is so many sub-batches"),
        INT("steps", steps, "5", 1, 1e6, "steps that count"),
        INT("skip", skip, "3", 1, 1e6, "steps before them that do not"),
        END,
    },
};

static const struct opt_group machine = {
    "Machine",
    (const struct opt[]){
        WIDTHS("gpus", gpus, "N,...", "1,2,4,8",
               "a machine for each number, up to 16 GPUs"),
        NUM("tflops", tflops, "300", 1e-3, 1e6,
            "what convolutions do on a GPU, in TFLOP/s"),
        NUM("tbs", tbs, "3", 1e-3, 1e3,
            "bytes that kernels move in its memory, in TB/s"),
        NUM("launch", launch, "5", 0.1, 1e4,
            "what a kernel takes beside, in microseconds"),
        NUM("memory", memory, "80", 1e-3, 1e5, "its memory, in GiB"),
        NUM("link", link, "370", 1e-3, 1e5,
            "from and to all other GPUs, each way, in GB/s"),
        NUM("latency", latency, "5", 0, 1e6,
            "of a transfer between GPUs, in microseconds"),
        NUM("pcie", pcie, "50", 1e-3, 1e5,
            "from and to main memory, each way, in GB/s"),
        NUM("pcie-latency", pcie_latency, "8", 0, 1e6,
            "of such a transfer, in microseconds"),
        END,
    },
};

static const struct opt_group output = {
    "Output",
    (const struct opt[]){
        FLAG("json", json, "a line of JSON per machine instead of the table"),
        END,
    },
};

const struct opt_command predict_command = {
    .name = "ddp-predict",
    .about =
        "Predict how training scales over the GPUs of a machine, without it.\n"
        "\n"
        "The task graph, the scheduling and the transfers are those of "
        "training, run by StarPU in SimGrid's time. A kernel takes its "
        "operations over --tflops plus its bytes over --tbs plus --launch; "
        "reading images takes no time. Compare machines and settings by it; "
        "what a GPU does is measured by ddp-bench train.\n"
        "\n"
        "efficiency is images a second and GPU, over those of the first "
        "machine; idle the time of the GPUs without a kernel; split the lanes "
        "whose tasks ran on more than one GPU; memory the most that a GPU "
        "held. STARPU_SCHED and other variables of StarPU apply.",
    .group =
        (const struct opt_group *const[]){&training, &machine, &output, NULL},
};
