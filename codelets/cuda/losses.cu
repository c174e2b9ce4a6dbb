/* losses.cu - the kernels of losses.h */
#include "launch.h"
#include "gpu/losses.h"

DDP__LOSSES_BLOCKS(DDP__BLOCK_KERNEL)
DDP__LOSSES_PLAIN(DDP__PLAIN_KERNEL)
