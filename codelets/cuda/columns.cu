/* columns.cu - the kernels of columns.h */
#include "launch.h"
#include "columns.h"

DDP__COLUMNS_BLOCKS(DDP__BLOCK_KERNEL)
