/* elementwise.cu - the kernels of elementwise.h */
#include "gpu/elementwise.h"
#include "launch.h"

DDP__ELEMENTWISE_ITEMS(DDP__ITEM_KERNEL)
