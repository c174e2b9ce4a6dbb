/* internal.h - what the files of lib/ share */
#ifndef DDP_INTERNAL_H
#define DDP_INTERNAL_H

#include "codelets.h"
#include "data.h"
#include "ddp.h"

#endif
