/* updates.cu - the kernels of updates.h */
#include "launch.h"
#include "gpu/updates.h"

DDP__UPDATES_PLAIN(DDP__PLAIN_KERNEL)
