/* messages.c - the messages of an exchange
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/messages.h"

int ddp__messages_new(struct ddp__messages *m, struct ddp__wire *w, int tag,
                      int most)
{
    *m = (struct ddp__messages){.wire = w, .tag = tag % (w->tags - 1)};
    m->request = calloc((size_t)most + 1, sizeof(*m->request));
    return m->request ? 0 : ddp__fail(DDP_ENOMEM, "out of memory for messages");
}

static int message_result(const struct ddp__messages *m, int rc)
{
    return rc < 0 ? ddp__fail(rc, "messages between ranks: %s", m->wire->why)
                  : rc;
}

int ddp__messages_send(struct ddp__messages *m, int to, const void *data,
                       size_t len)
{
    int rc = 0;

    if (len)
        rc = m->wire->send(m->wire, to, m->tag, data, len,
                           &m->request[m->count++]);
    return message_result(m, rc);
}

int ddp__messages_receive(struct ddp__messages *m, int from, void *data,
                          size_t len)
{
    int rc = 0;

    if (len)
        rc = m->wire->recv(m->wire, from, m->tag, data, len,
                           &m->request[m->count++]);
    return message_result(m, rc);
}

int ddp__messages_poll(struct ddp__messages *m)
{
    int rc;

    while (m->count > 0) {
        uintptr_t *last = &m->request[m->count - 1];

        if (*last && (rc = m->wire->test(m->wire, last)) != 1)
            return message_result(m, rc);
        m->count--;
        m->wire->over++;
    }
    return 1;
}

bool ddp__messages_over(const struct ddp__messages *m)
{
    return m->count == 0;
}
