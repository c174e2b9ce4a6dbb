/* elementwise.cu - the kernels of elementwise.h */
#include "launch.h"
#include "elementwise.h"

DDP__ELEMENTWISE_ITEMS(DDP__ITEM_KERNEL)
