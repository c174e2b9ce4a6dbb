/* wandb_items.h - values in records of Weights & Biases
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_WANDB_ITEMS_H
#define DDP_WANDB_ITEMS_H

#include "base/proto.h"
#include "train/log.h"

/* Fields of Record, each a message. */
enum ddp__wandb_record {
    DDP__WANDB_HISTORY = 2,
    DDP__WANDB_SUMMARY = 3,
    DDP__WANDB_CONFIG = 5,
    DDP__WANDB_FILES = 6,
    DDP__WANDB_STATS = 7,
    DDP__WANDB_RUN = 17,
    DDP__WANDB_EXIT = 18,
    DDP__WANDB_FINAL = 20,
    DDP__WANDB_HEADER = 21,
    DDP__WANDB_FOOTER = 22
};

/* Items of most of these messages, and the fields of an item. */
enum { DDP__WANDB_ITEM = 1 };
enum {
    DDP__WANDB_KEY = 1,
    DDP__WANDB_NESTED_KEY = 2,
    DDP__WANDB_VALUE_JSON = 16
};

/* A row of a history: the step of HistoryRecord, and its number. */
enum { DDP__WANDB_STEP = 2, DDP__WANDB_NUMBER = 1 };

/* Seconds of a Timestamp of Protocol Buffers. */
enum { DDP__WANDB_SECONDS = 1, DDP__WANDB_NANOS = 2 };

/* A string, which must be UTF-8: "?" if it is not. */
void ddp__wandb_text(struct ddp__proto *p, int field, const char *text);

/* An item of p, in field `item`: a number under a name in field `key`. */
void ddp__wandb_number(struct ddp__proto *p, int item, int key,
                       const char *name, double v);

/* The same of a histogram. */
void ddp__wandb_histogram(struct ddp__proto *p, int item, int key,
                          const char *name, const struct ddp__histogram *h);

/* A Timestamp in a field of p. */
void ddp__wandb_time(struct ddp__proto *p, int field, double t);

/* Items of p: the settings of a log. */
void ddp__wandb_settings(const struct ddp_log *l, struct ddp__proto *p);

#endif
