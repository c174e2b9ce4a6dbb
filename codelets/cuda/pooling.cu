/* pooling.cu - the kernels of pooling.h */
#include "launch.h"
#include "gpu/pooling.h"

DDP__POOLING_ITEMS(DDP__ITEM_KERNEL)
