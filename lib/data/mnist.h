/* mnist.h - MNIST's files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_MNIST_H
#define DDP_MNIST_H

#include <stdbool.h>

enum { DDP__MNIST_SIDE = 28 };

/* Whether the training images are in dir or a folder that ddp_dataset_mnist()
 * finds there. */
bool ddp__mnist_is_there(const char *dir);

#endif
