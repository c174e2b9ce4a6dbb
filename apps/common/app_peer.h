/* app_peer.h - the end of a run whose other ranks are gone
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef APP_PEER_H
#define APP_PEER_H

#include <stdbool.h>

/* For struct ddp_config: says at once why, and has the program end within 10
 * seconds, with EXIT_PEER: its launcher may soon end it, and its own work may
 * hang as well. */
void app_peer_lost(const char *why, void *arg);

bool app_peer_is_lost(void);

/* What of a message has not been said by app_peer_lost(). */
const char *app_peer_unsaid(const char *text);

#endif
