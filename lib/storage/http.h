/* http.h - a request to a server, until it is answered
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_HTTP_H
#define DDP_HTTP_H

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"

/* One exchange.  What belongs to the request is set before, and not owned. */
struct ddp__http {
    char *url;                 /* encoded; owned */
    const char *verb;          /* NULL: GET */
    struct curl_slist *header; /* owned */
    const char *sign;          /* for CURLOPT_AWS_SIGV4; NULL: not signed */
    const char *user, *secret;
    bool direct;      /* without a proxy */
    long patience_ms; /* for all of it; 0: as long as bytes arrive */
    size_t expected;  /* bytes of the answer; 0: unknown */
    size_t most;      /* bytes that it may have */
    /* The answer. */
    CURLcode rc;
    char why[CURL_ERROR_SIZE]; /* it is not CURLE_OK */
    bool longer;               /* it had more bytes */
    bool nomem;
    long status;
    struct ddp__bytes body; /* owned */
    char etag[128], type[64], span[64], place[256], region[32];
    int wait; /* seconds that the server asks to wait */
};

/* How a request is made and judged, again for each attempt. */
struct ddp__asking {
    /* Set url, header and so on; a negative code ends it. */
    int (*make)(struct ddp__http *r, void *arg);
    /* Judge an answer that came whole, or a refusal; DDP__AGAIN or a negative
     * code with a message. */
    int (*judge)(struct ddp__http *r, void *arg);
    void *arg;
    int tries; /* how often it was asked; set by ddp__http_ask() */
};
enum { DDP__AGAIN = 1 };

/* A connection that is kept from one request to the next; one thread's. */
struct ddp__line {
    CURL *curl;
    const atomic_bool *stop[2]; /* give up when one becomes true; or NULL */
};
int ddp__line_open(struct ddp__line *l, const atomic_bool *stop);
void ddp__line_close(struct ddp__line *l);

/* Ask once. */
void ddp__http_run(struct ddp__line *l, struct ddp__http *r);
void ddp__http_free(struct ddp__http *r);

/* Ask until there is an answer, a refusal, or the time is over (DDP_EIO), with
 * longer and longer pauses.  *r is the last answer. */
int ddp__http_ask(struct ddp__line *l, struct ddp__http *r,
                  struct ddp__asking *a);

/* Add "name: value" to the request. */
int ddp__http_header(struct ddp__http *r, const char *name, const char *value);

/* Encode as a URL has it: all but letters, digits, "-._~" and those of keep.
 * To be freed by the caller; NULL: no memory. */
char *ddp__http_encode(const char *text, const char *keep);

#endif
