/* options_data.h - the options of data, images and augmentation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef OPTIONS_DATA_H
#define OPTIONS_DATA_H

#include "common/opt.h"

extern const struct opt_group options_train_data_group, options_eval_data_group;
extern const struct opt_group options_images_group, options_augmentation_group;

#endif
