/* board_network.h - what the network of a run looks like, for its logs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BOARD_NETWORK_H
#define BOARD_NETWORK_H

#include "board.h"

/* Histograms of the weights after so many steps, and of the gradients that the
 * trainer has kept of the last one.  0 or an exit code. */
int board_histograms(struct board *b, ddp_chain_t *chain,
                     ddp_trainer_t *trainer, int64_t step);

/* The graph of the network, of a run that begins. */
void board_graph(struct board *b, ddp_chain_t *chain, int64_t img_size);

/* The first n images of a run that begins, with their classes.  0 or an exit
 * code: they cannot be read. */
int board_images(struct board *b, ddp_trainer_t *trainer,
                 const ddp_dataset_t *data, int64_t n);

#endif
