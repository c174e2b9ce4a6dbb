/* servers.c - the servers that are open, and their addresses
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A program asks several questions about a data set before it opens one split
 * and then another.  So the list of a server is kept for a while after its last
 * user.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "storage/fetch.h"
#include "storage/s3.h"
#include "storage/servers.h"
#include "storage/web.h"

enum { KEPT_S = 60, FAILED_S = 10 };

/* ---- addresses ---------------------------------------------------------- */

/* A host, maybe with a port. */
static bool is_host(const char *host, size_t n)
{
    size_t name = *host == '['
                      ? strcspn(host, "]") + 1
                      : strspn(host, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "abcdefghijklmnopqrstuvwxyz0123456789._-");

    if (!n || name > n)
        return false;
    return name == n || (host[name] == ':' &&
                         strspn(host + name + 1, "0123456789") == n - name - 1);
}

int ddp__address_check(const char *address)
{
    const char *host = strstr(address, "://") + 3;

    if (strpbrk(address, "?#") || !is_host(host, strcspn(host, "/")))
        return ddp__fail(DDP_EINVAL,
                         "an address of data is %.*s, a host or bucket, and a "
                         "path; it must not have a name and password, or a "
                         "query (after '?')",
                         (int)(host - address), address);
    for (const char *p = address; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 127)
            return ddp__fail(DDP_EINVAL,
                             "%s: an address must not have spaces in it",
                             address);
    return 0;
}

char *ddp__address_clean(const char *address, size_t n)
{
    size_t start = (size_t)(strstr(address, "://") + 3 - address);
    char *copy = strndup(address, n), *out = copy ? copy + start : NULL;

    if (!copy) {
        ddp__fail(DDP_ENOMEM, "out of memory for an address");
        return NULL;
    }
    for (const char *in = out; *in; in++)
        if (*in != '/' || (in[1] != '/' && in[1]))
            *out++ = *in;
    *out = 0;
    return copy;
}

/* ---- servers ------------------------------------------------------------ */

/* All servers that are open, or were a moment ago. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ddp__server *servers;

void ddp__server_free(struct ddp__server *s)
{
    atomic_store(&s->closing, true);
    ddp__fetch_forget(s);
    ddp__tree_free(&s->tree);
    s->ops->free(s);
    free(s->root);
    free(s);
}

/* With the lock. */
static void free_old_servers(void)
{
    for (struct ddp__server **at = &servers, *s; (s = *at);)
        if (!s->users && ddp__clock() - s->unused > KEPT_S) {
            *at = s->next;
            ddp__server_free(s);
        } else {
            at = &s->next;
        }
}

struct ddp__server *ddp__server_new(const char *address)
{
    static const struct {
        const char *scheme;
        struct ddp__server *(*open)(const char *address);
    } kinds[] = {{"s3://", ddp__s3_new},
                 {"http://", ddp__web_new},
                 {"https://", ddp__web_new}};
    const char *host = strstr(address, "://") + 3;

    if (ddp__address_check(address) < 0)
        return NULL;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (!strncmp(address, kinds[i].scheme, strlen(kinds[i].scheme)))
            return kinds[i].open(address);
    ddp__fail(DDP_EINVAL, "%.*s: expected a folder, s3://, http:// or https://",
              (int)(host - address), address);
    return NULL;
}

static int list_server(struct ddp__server *s)
{
    int rc = s->ops->list(s, &s->tree);

    if (rc == 0)
        rc = ddp__tree_sort(&s->tree);
    if (rc == 0 && !s->tree.count)
        rc = ddp__fail(DDP_EDATA, "there are no files below this address");
    if (rc < 0)
        return ddp__fail(rc, "%s: %s", s->root, ddp_errmsg());
    return 0;
}

/* With the lock: a server of which the address is a part, or NULL. */
static struct ddp__server *find_server(const char *address)
{
    for (struct ddp__server *s = servers; s; s = s->next) {
        size_t n = strlen(s->root);

        if (!strncmp(s->root, address, n) && (!address[n] || address[n] == '/'))
            return s;
    }
    return NULL;
}

/* The last address that could not be opened.  Who asks several questions about
 * it waits for the first answer only. */
static struct {
    char address[512], message[1024];
    int rc;
    double when;
} failed;

static void note_failure(const char *address, int rc)
{
    snprintf(failed.address, sizeof(failed.address), "%s", address);
    snprintf(failed.message, sizeof(failed.message), "%s", ddp_errmsg());
    failed.rc = rc;
    failed.when = ddp__clock();
}

static bool failed_before(const char *address)
{
    if (!failed.rc || strcmp(failed.address, address) != 0 ||
        ddp__clock() - failed.when > FAILED_S)
        return false;
    ddp__fail(failed.rc, "%s", failed.message);
    return true;
}

/* With the lock. */
static struct ddp__server *open_server(const char *address)
{
    struct ddp__server *s = find_server(address);
    int rc;

    if (s || failed_before(address) || !(s = ddp__server_new(address)))
        return s;
    if ((rc = list_server(s)) < 0) {
        note_failure(address, rc);
        ddp__server_free(s);
        return NULL;
    }
    s->next = servers;
    servers = s;
    return s;
}

struct ddp__server *ddp__server_use(const char *address)
{
    struct ddp__server *s;

    ddp__thread_note_cores();
    pthread_mutex_lock(&lock);
    free_old_servers();
    if ((s = open_server(address)))
        s->users++;
    pthread_mutex_unlock(&lock);
    return s;
}

void ddp__server_leave(struct ddp__server *s)
{
    pthread_mutex_lock(&lock);
    if (--s->users == 0)
        s->unused = ddp__clock();
    pthread_mutex_unlock(&lock);
}

bool ddp__server_is_open(const char *address)
{
    bool open;

    pthread_mutex_lock(&lock);
    open = find_server(address);
    pthread_mutex_unlock(&lock);
    return open;
}
