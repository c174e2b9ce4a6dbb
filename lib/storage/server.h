/* server.h - one server's files, and how it is asked for them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SERVER_H
#define DDP_SERVER_H

#include "storage/http.h"
#include "storage/tree.h"

struct ddp__server;

/* The kinds fill this. */
struct ddp__server_ops {
    /* Add all files to the tree, in any order. */
    int (*list)(struct ddp__server *s, struct ddp__tree *t);
    /* Ask for a file; path "": the one that the root names. */
    int (*make)(struct ddp__server *s, const char *path, struct ddp__http *r);
    /* What a status of 300 or more means: DDP__AGAIN, or a code, with a
     * message. */
    int (*refused)(struct ddp__server *s, struct ddp__http *r);
    void (*free)(struct ddp__server *s);
};

/* The first member of each kind's own struct. */
struct ddp__server {
    const struct ddp__server_ops *ops;
    char *root; /* its address, without '/' at the end; owned */
    struct ddp__tree tree;
    int users;           /* of servers.c, with its lock */
    double unused;       /* since when there are none */
    atomic_bool closing; /* what is on its way is not needed */
    struct ddp__server *next;
};

/* A file to be fetched. */
struct ddp__object {
    struct ddp__server *server;
    size_t leaf;      /* of its tree; SIZE_MAX: it is not listed */
    const char *path; /* in the server */
    const char *etag; /* "": unknown */
    int64_t size;     /* -1: unknown, up to most */
    size_t most;
    bool part;  /* `size` bytes from byte `at` only */
    int64_t at; /* else 0 */
};

/* Fetch it into b; tries: how often it was asked for. */
int ddp__object_get(struct ddp__line *l, const struct ddp__object *o,
                    struct ddp__bytes *b, int *tries);

/* Messages of servers of any kind. */
int ddp__server_fail_moved(const struct ddp__http *r);

#endif
