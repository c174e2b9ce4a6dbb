/* context.h - a started libddp */
#ifndef DDP_CONTEXT_H
#define DDP_CONTEXT_H

#include "internal.h"

struct ddp {
    int workers;
    struct ddp__params *params; /* bound ones; not owned */
    char describe[256];
};

#endif
