/* checkpoint_run.h - a small run with checkpoints, and its folder
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The oracle is the run that nothing interrupted: the CRC of its weights, the
 * bytes of its optimizer's state, its metrics, to the bit.
 */
#ifndef CHECKPOINT_RUN_H
#define CHECKPOINT_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "ddp.h"
#include "tap.h"

/* Three steps an epoch, the last one smaller; twelve in all. */
enum { SIZE = 6, CLASSES = 3, COUNT = 20, BATCH = 8, EPOCHS = 4, STEPS = 12 };

extern ddp_t *ddp;
extern char top[64], dir[96], copies[96];

/* A context of one worker, and the folders; and their end. */
void begin_program(void);
void end_program(void);

extern int fail_input; /* the n-th sample read from now fails; 0: none */

/* A degree: the kernel copies, on a worker that dies. */
enum { COPIES = 2 };

extern int until_death; /* the n-th copy from now; 0: none */
extern int until_loss;  /* of a device that is not there */
extern int dead;        /* the worker on which it and all later ones fail */

/* What may differ from network to network without another shape. */
struct variant {
    int width;
    float eps, dropout;
    enum ddp_act act;
    double degree;
    bool extra; /* one more activation at the end */
};

/* A trainer and what it was made of. */
struct run {
    ddp_dataset_t *data;
    ddp_chain_t *chain;
    ddp_trainer_t *trainer;
    struct ddp_train_config cfg;
    int64_t count;
    int64_t eval_count; /* samples that it evaluates on; 0: the program's
                           business */
    ddp_dataset_t *eval_data;
    struct variant network;
    int64_t stop_at;     /* on_step stops after it; 0: never */
    int64_t ask_at;      /* on_step asks for a checkpoint */
    bool evaluates;      /* after every epoch */
    int epochs_reported; /* calls of on_epoch */
    double epoch_loss;   /* of the last one */
};

struct run usual(void);
bool begin(struct run *r);
uint32_t checksum(const struct run *r);
void end(struct run *r);

/* Train a run to its end and return the checksum; 0 after a failure. */
uint32_t finish(struct run *r);

/* What the run ends with when nothing happens to it. */
uint32_t undisturbed(struct run r);

/* Resume from the folder, or start again; the checksum at the end. */
uint32_t resume(struct run r, struct ddp_checkpoint *c);

/* ---- files -------------------------------------------------------------- */

void shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void clean(void);
bool there(const char *name);
const char *step_path(int64_t step, const char *file);

/* Whether there is an incomplete checkpoint. */
bool has_leftovers(void);

/* Change the last byte of a file: of a number, where it has tensors. */
void spoil(const char *path);

/* A run that is stopped, with a checkpoint of so many steps. */
static inline void stop_after(struct run r, int steps)
{
    clean();
    r.cfg.checkpoint.dir = dir;
    begin(&r);
    for (int i = 0; i < steps; i++)
        ddp_trainer_step(r.trainer, NULL);
    is_int(ddp_trainer_checkpoint(r.trainer), 0, "a checkpoint of step %d",
           steps);
    end(&r);
}
#endif
