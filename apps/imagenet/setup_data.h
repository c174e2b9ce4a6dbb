/* setup_data.h - the data sets that the settings name
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef SETUP_DATA_H
#define SETUP_DATA_H

#include "ddp.h"

#include "options.h"

/* The splits of data to go through, as bits; says which there is not.  Data
 * without splits are those of training. */
unsigned setup_splits(const char *data);

/* Open a split of --data: the exit code, or OPTS_GO, *d, and s->img_size. */
int setup_data(const struct opts *o, struct settings *s, enum ddp_split split,
               ddp_dataset_t **d);

/* The same for the training images of --data, without or only with those that
 * --val-split holds back. */
int setup_part(const struct opts *o, struct settings *s, enum ddp_split part,
               ddp_dataset_t **d);

/* Open the validation images, of --val or --data, with the classes of the
 * training images; the same. */
int setup_val(const struct opts *o, struct settings *s,
              const ddp_dataset_t *train, ddp_dataset_t **d);

/* Report the unreadable images from number `from` on, which `what` calls
 * "unreadable image"; how many there are. */
int64_t setup_report_bad(const ddp_dataset_t *d, int64_t from,
                         const char *what);

/* Report how many reads were tried again, if there were some. */
void setup_report_retries(const ddp_dataset_t *d);

/* A line with what servers of data were asked for, if they were. */
void setup_report_storage(void);

/* Images without classes; the exit code, or OPTS_GO, *d, and s->img_size. */
int setup_images(const struct opts *o, struct settings *s,
                 const char *const *path, int64_t n, ddp_dataset_t **d);

/* If --data is a name of --data-config: from now on it is where that is.  The
 * exit code, or OPTS_GO. */
int setup_named(struct settings *s);

/* The policy that --aa names; an error of the library. */
int setup_policy(const struct settings *s, struct ddp_policy *p);

#endif
