/* peer.h - another program that trains the same networks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "settings.h"

/* How its command is called: the help of --peer. */
#define PEER_HELP                                                              \
    "compare with another program: it is run with the network, the side of "   \
    "the images, their number in a step, f32 or bf16, the classes, the "       \
    "workers and the seconds as arguments, and prints images per second, or "  \
    "nothing for what it does not have (contrib/bench-torch: PyTorch)"

/* Images a second of the program --peer, with steps of so many images; 0: it
 * does not have this. */
double peer_speed(const struct bench_settings *s, int64_t batch);

#endif
