/* columns.cu - the kernels of columns.h */
#include "gpu/columns.h"
#include "launch.h"

DDP__COLUMNS_BLOCKS(DDP__BLOCK_KERNEL)
