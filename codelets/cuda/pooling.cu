/* pooling.cu - the kernels of pooling.h */
#include "launch.h"
#include "pooling.h"

DDP__POOLING_ITEMS(DDP__ITEM_KERNEL)
