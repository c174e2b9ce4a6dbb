/* setup.h - networks, data sets and devices as the settings name them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef SETUP_H
#define SETUP_H

#include "ddp.h"

#include "options.h"

/* Refuse an unknown model, and give one of another name ours: OPTS_GO, or an
 * exit code after a message. */
int setup_check_model(const struct opts *o, struct settings *s);

/* The network; NULL after a failure of the library. */
ddp_chain_t *setup_model(const struct settings *s);

/* The same, for images of s->img_size: OPTS_GO, or an exit code after a
 * message.  *c is to be freed. */
int setup_network(const struct settings *s, ddp_chain_t **c);

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

/* How servers of data are asked; its exit code, or OPTS_GO. */
int setup_storage(const struct settings *s);

/* If --data is a name of --data-config: from now on it is where that is.  The
 * exit code, or OPTS_GO. */
int setup_named(struct settings *s);

/* Take options that were not given from --config; its exit code, or OPTS_GO. */
int setup_config(struct opts *o, const struct settings *s);

/* Start the devices; its exit code, or OPTS_GO and *ddp. */
int setup_devices(const struct settings *s, ddp_t **ddp);

/* How to evaluate; who gets the predictions, the caller sets. */
void setup_evaluation(const struct settings *s, struct ddp_evaluate_config *c);

/* The number of trained parameters. */
size_t setup_params(const ddp_chain_t *c);

/* The policy that --aa names; an error of the library. */
int setup_policy(const struct settings *s, struct ddp_policy *p);

enum ddp_dtype setup_dtype(const struct settings *s);
const char *setup_dtype_name(const struct settings *s);
enum ddp_tta setup_tta(const struct settings *s);

#endif
