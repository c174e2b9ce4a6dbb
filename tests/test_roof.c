/* test_roof.c - how fast a GPU could be: the arithmetic, without one
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdlib.h>
#include "ddp.h"
#include "bench/roof.h"
#include "tap.h"

/* As the driver describes them. */
static const struct ddp_gpu_info h200 = {"NVIDIA H200", 90, 132, 1.98e9,
                                         4.9e12},
                                 h100 = {"NVIDIA H100 80GB HBM3", 90, 132,
                                         1.98e9, 3.35e12},
                                 a100 = {"NVIDIA A100-SXM4-80GB", 80, 108,
                                         1.41e9, 2.04e12};

/* A device of 100 flops and 10 bytes a second.  x has 16 bytes, y 48, and 9
 * parameters in 3 images 12 each: 7.6 s, or as long as the arithmetic takes;
 * 30 bytes of an update are 3 s. */
static void test_layers(void)
{
    const struct roof r = {100, 10, ""};
    struct ddp_layer_info l = {.kind = "conv",
                               .in = {2, 2, 1},
                               .out = {2, 2, 3},
                               .params = 9,
                               .flops = 120};
    struct roof_time t = {.element = 4, .sub_batch = 3, .batch = 6};

    roof_add(&t, &r, &l);
    is_near(t.seconds, 2 * 7.6 + 3, 1e-9, "the first convolution: two kernels");
    l.kind = "dense";
    l.flops = 2000;
    t.seconds = 0;
    roof_add(&t, &r, &l);
    is_near(t.seconds, 3 * 20 + 3, 1e-9, "then three, of much arithmetic");
    is_near(t.flops, 2 * 120 + 3 * 2000, 1e-9, "all of which is counted");
    l = (struct ddp_layer_info){.kind = "batch_norm", .in = {2, 2, 1}};
    t.seconds = 0;
    roof_add(&t, &r, &l);
    is_near(t.seconds, 5 * 1.6, 1e-9, "batch norm: five passes");
    l = (struct ddp_layer_info){
        .kind = "max_pool", .in = {2, 2, 1}, .out = {1, 1, 1}};
    t.seconds = 0;
    roof_add(&t, &r, &l);
    is_near(t.seconds, 2 * 2.0, 1e-9, "a pool: both sides, there and back");
    l.kind = "activation";
    t.seconds = 0;
    roof_add(&t, &r, &l);
    is_near(t.seconds, 0, 0, "what rides along: nothing");
}

/* The rule of thumb for devices that are not known by name is good to a fifth:
 * it is for telling 30 % of a roof from 60 %. */
static void test_rule(const struct ddp_gpu_info *known)
{
    struct ddp_gpu_info nobody = *known;
    struct roof by_name, by_rule;

    strcpy(nobody.name, "a new one");
    roof_of(&by_name, known, 1, DDP_BF16);
    roof_of(&by_rule, &nobody, 1, DDP_BF16);
    ok(fabs(by_rule.flops / by_name.flops - 1) < 0.2 &&
           fabs(by_rule.bytes / by_name.bytes - 1) < 0.1,
       "%s; %s", by_name.base, by_rule.base);
}

static void test_types(void)
{
    struct roof bf16, tf32, f32, two;

    setenv("DDP_TF32", "1", 1);
    roof_of(&bf16, &h200, 1, DDP_BF16);
    roof_of(&tf32, &h200, 1, DDP_F32);
    setenv("DDP_TF32", "0", 1);
    roof_of(&f32, &h200, 1, DDP_F32);
    roof_of(&two, &h200, 2, DDP_BF16);
    ok(strstr(bf16.base, "known by name") && bf16.flops == 790e12,
       "a device that is known: %s", bf16.base);
    is_near(tf32.flops, bf16.flops / 2, 1, "TF32: half of it");
    ok(f32.flops < tf32.flops / 4 && f32.flops > 40e12,
       "f32 without tensor cores: %s", f32.base);
    ok(two.flops == 2 * bf16.flops && two.bytes == 2 * bf16.bytes,
       "two devices: %s", two.base);
}

static int add(const struct ddp_layer_info *l, void *arg)
{
    void **a = arg;

    roof_add(a[0], a[1], l);
    return 0;
}

/* 24.3 GFLOP an image: 4.09e9 multiply-adds, times 6, less the gradient of the
 * images (0.12e9, times 2).  MLPerf's record on an H200 is 7,950 images a
 * second and GPU (v4.0, 2024); 790 TFLOP/s are good for 32,500. */
static void test_resnet(void)
{
    struct roof r;
    struct roof_time t = {.element = 2, .sub_batch = 256, .batch = 256};
    ddp_chain_t *c = ddp_model_new("resnet50", NULL);
    int rc;

    roof_of(&r, &h200, 1, DDP_BF16);
    rc = ddp_chain_inspect(c, (struct ddp_shape){224, 224, 3}, DDP_BF16, add,
                           (void *[]){&t, &r});
    ok(rc == 0 && fabs(t.flops - 24.3e9) < 0.1e9, "ResNet-50: %.2f GFLOP",
       t.flops * 1e-9);
    ok(1 / t.seconds > 7950 && 1 / t.seconds < 32500,
       "between a record and the arithmetic alone: %.0f images a second",
       1 / t.seconds);
    diag("%.1f MB an image", t.bytes * 1e-6);
    ddp_chain_free(c);
}

int main(void)
{
    test_layers();
    test_rule(&h200);
    test_rule(&h100);
    test_rule(&a100);
    test_types();
    test_resnet();
    return done_testing();
}
