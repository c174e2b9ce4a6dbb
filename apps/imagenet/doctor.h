/* doctor.h - "imagenet doctor": whether training will work here, and how
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include "options.h"

int doctor_run(struct opts *o, struct settings *s);

#endif
