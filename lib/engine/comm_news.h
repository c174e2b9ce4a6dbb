/* comm_news.h - the statistics of a step, and what the ranks agree on
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_COMM_NEWS_H
#define DDP_COMM_NEWS_H

#include <stddef.h>

struct ddp__net_op;
struct ddp__wire;

/* Bytes of what a rank tells; arg: the exchange. */
size_t ddp__comm_news_len(const void *arg, int rank);

/* As poll() of an operation. */
int ddp__comm_poll_news(struct ddp__net_op *op, struct ddp__wire *w);

#endif
