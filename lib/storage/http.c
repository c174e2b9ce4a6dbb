/* http.c - a request to a server, until it is answered
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Pauses are drawn from 0 to a bound that doubles ("full jitter"): who failed
 * together does not come back together.  See Brooker, "Exponential backoff and
 * jitter", AWS Architecture Blog, 2015.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/philox.h"
#include "storage/http.h"
#include "storage/settings.h"

enum {
    FIRST_PAUSE_MS = 100,
    LONGEST_PAUSE_MS = 20000,
    LONGEST_ASKED_S = 60,
    FIRST_ROOM = 1 << 20,
};

/* ---- lines -------------------------------------------------------------- */

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_rc;

static void curl_init(void)
{
    curl_rc = curl_global_init(CURL_GLOBAL_DEFAULT);
}

int ddp__line_open(struct ddp__line *l, const atomic_bool *stop)
{
    pthread_once(&curl_once, curl_init);
    l->stop[0] = stop;
    l->stop[1] = NULL;
    l->curl = curl_rc == CURLE_OK ? curl_easy_init() : NULL;
    return l->curl ? 0 : ddp__fail(DDP_ENOMEM, "out of memory for libcurl");
}

void ddp__line_close(struct ddp__line *l)
{
    if (l->curl)
        curl_easy_cleanup(l->curl);
    l->curl = NULL;
}

/* ---- one exchange ------------------------------------------------------- */

/* Room grows with what has arrived, not with what the server announces. */
static size_t first_room(const struct ddp__http *r, size_t n)
{
    size_t room = r->expected < FIRST_ROOM ? r->expected : FIRST_ROOM;

    return (room > n ? room : n) + 1;
}

static size_t take_body(char *p, size_t one, size_t n, void *arg)
{
    struct ddp__http *r = arg;
    struct ddp__bytes *b = &r->body;

    n *= one;
    if (n > r->most - b->len) {
        r->longer = true;
        return 0;
    }
    if (b->len + n >= b->room) {
        size_t room = b->data ? 2 * (b->len + n) : first_room(r, n);
        uint8_t *more = realloc(b->data, room);

        if (!more) {
            r->nomem = true;
            return 0;
        }
        b->data = more;
        b->room = room;
    }
    memcpy(b->data + b->len, p, n);
    b->len += n;
    b->data[b->len] = 0;
    return n;
}

/* The value of the header `name`, if this line is it. */
static void take_value(const char *line, size_t len, const char *name,
                       char *value, size_t size)
{
    size_t n = strlen(name);

    if (len <= n || line[n] != ':' || strncasecmp(line, name, n) != 0)
        return;
    line += n + 1;
    len -= n + 1;
    for (; len && (*line == ' ' || *line == '\t'); len--)
        line++;
    while (len && strchr("\r\n \t", line[len - 1]))
        len--;
    if (len >= size)
        len = size - 1;
    memcpy(value, line, len);
    value[len] = 0;
}

static size_t take_header(char *line, size_t one, size_t n, void *arg)
{
    struct ddp__http *r = arg;
    char wait[16] = "";
    size_t len = one * n;

    if (len > 5 && !memcmp(line, "HTTP/", 5)) {
        *r->etag = *r->type = *r->span = *r->place = *r->region = 0;
        r->wait = 0;
        r->body.len = 0;
    }
    take_value(line, len, "etag", r->etag, sizeof(r->etag));
    take_value(line, len, "content-type", r->type, sizeof(r->type));
    take_value(line, len, "content-range", r->span, sizeof(r->span));
    take_value(line, len, "location", r->place, sizeof(r->place));
    take_value(line, len, "x-amz-bucket-region", r->region, sizeof(r->region));
    take_value(line, len, "retry-after", wait, sizeof(wait));
    if (*wait)
        r->wait = atoi(wait);
    return len;
}

static int look_up(void *arg, curl_off_t a, curl_off_t b, curl_off_t c,
                   curl_off_t d)
{
    const struct ddp__line *l = arg;

    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return (l->stop[0] && atomic_load(l->stop[0])) ||
           (l->stop[1] && atomic_load(l->stop[1]));
}

static void set_request(CURL *h, const struct ddp__http *r)
{
    curl_easy_setopt(h, CURLOPT_URL, r->url);
    curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    if (r->verb)
        curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, r->verb);
    if (r->header)
        curl_easy_setopt(h, CURLOPT_HTTPHEADER, r->header);
    if (r->direct)
        curl_easy_setopt(h, CURLOPT_NOPROXY, "*");
    if (!r->sign)
        return;
    curl_easy_setopt(h, CURLOPT_AWS_SIGV4, r->sign);
    curl_easy_setopt(h, CURLOPT_USERNAME, r->user);
    curl_easy_setopt(h, CURLOPT_PASSWORD, r->secret);
}

static void set_patience(CURL *h, const struct ddp__http *r)
{
    long most = (long)ddp__storage_settings()->timeout;
    long stall = most < 60 ? most / 2 + 1 : 30;

    if (r->patience_ms) {
        curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, r->patience_ms);
        curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, r->patience_ms);
        return;
    }
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT, stall < 10 ? stall : 10L);
    curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, stall);
}

void ddp__http_run(struct ddp__line *l, struct ddp__http *r)
{
    CURL *h = l->curl;

    curl_easy_reset(h);
    set_request(h, r);
    set_patience(h, r);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_USERAGENT, "libddp/" PACKAGE_VERSION);
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, r->why);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, r);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, r);
    curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, look_up);
    curl_easy_setopt(h, CURLOPT_XFERINFODATA, l);
    *r->why = 0;
    r->status = 0;
    r->body.len = 0;
    r->longer = r->nomem = false;
    r->rc = curl_easy_perform(h);
    curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &r->status);
    if (!*r->why)
        snprintf(r->why, sizeof(r->why), "%s", curl_easy_strerror(r->rc));
}

void ddp__http_free(struct ddp__http *r)
{
    free(r->url);
    free(r->body.data);
    curl_slist_free_all(r->header);
    *r = (struct ddp__http){0};
}

int ddp__http_header(struct ddp__http *r, const char *name, const char *value)
{
    struct curl_slist *more;
    char *line;

    if (asprintf(&line, "%s: %s", name, value) < 0)
        return ddp__fail(DDP_ENOMEM, "out of memory for a request");
    more = curl_slist_append(r->header, line);
    explicit_bzero(line, strlen(line));
    free(line);
    if (!more)
        return ddp__fail(DDP_ENOMEM, "out of memory for a request");
    r->header = more;
    return 0;
}

char *ddp__http_encode(const char *text, const char *keep)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz0123456789-._~";
    char *url = malloc(3 * strlen(text) + 1), *out = url;

    for (; url && *text; text++)
        if (strchr(plain, *text) || strchr(keep, *text))
            *out++ = *text;
        else
            out += sprintf(out, "%%%02X", (unsigned char)*text);
    if (url)
        *out = 0;
    else
        ddp__fail(DDP_ENOMEM, "out of memory for a URL");
    return url;
}

/* ---- until it is answered ----------------------------------------------- */

static bool is_busy(long status)
{
    return status == 408 || status == 429 || status == 500 || status == 502 ||
           status == 503 || status == 504;
}

/* Errors that the next attempt would have too. */
static bool is_lasting(CURLcode rc)
{
    return rc == CURLE_URL_MALFORMAT || rc == CURLE_UNSUPPORTED_PROTOCOL ||
           rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_NOT_BUILT_IN ||
           rc == CURLE_BAD_FUNCTION_ARGUMENT || rc == CURLE_SSL_CACERT_BADFILE;
}

/* Faults of the connection and of the server; 0: it is up to the caller. */
static int judge_exchange(const struct ddp__http *r)
{
    if (r->nomem)
        return ddp__fail(DDP_ENOMEM, "out of memory for %zu bytes", r->most);
    if (r->rc == CURLE_ABORTED_BY_CALLBACK)
        return ddp__fail(DDP_ESTOPPED, "was not fetched: the process ends");
    if (is_busy(r->status)) {
        ddp__fail(DDP_EIO, "the server answered %ld", r->status);
        return DDP__AGAIN;
    }
    if (r->rc == CURLE_OK || r->longer)
        return 0;
    ddp__fail(DDP_EIO, "the server could not be read: %s", r->why);
    return is_lasting(r->rc) ? DDP_EIO : DDP__AGAIN;
}

/* Seconds before attempt number `tries` + 1. */
static double pause_of(int tries, int asked)
{
    struct timespec t;
    double bound = FIRST_PAUSE_MS;
    uint32_t bits;

    clock_gettime(CLOCK_MONOTONIC, &t);
    bits = ddp__philox((uint64_t)(uintptr_t)&t, (uint64_t)tries,
                       (uint64_t)t.tv_nsec)
               .v[0];
    for (int i = 1; i < tries && bound < LONGEST_PAUSE_MS; i++)
        bound *= 2;
    if (bound > LONGEST_PAUSE_MS)
        bound = LONGEST_PAUSE_MS;
    if (asked > LONGEST_ASKED_S)
        asked = LONGEST_ASKED_S;
    return (asked > 0 ? asked : 0) + bound / 1000 * (double)ddp__uniform(bits);
}

static void pause_for(const struct ddp__line *l, double seconds)
{
    const struct timespec tick = {0, 20000000};
    double end = ddp__clock() + seconds;

    while (ddp__clock() < end && !look_up((void *)(uintptr_t)l, 0, 0, 0, 0))
        nanosleep(&tick, NULL);
}

static int ask_once(struct ddp__line *l, struct ddp__http *r,
                    struct ddp__asking *a)
{
    int rc;

    ddp__http_free(r);
    if ((rc = a->make(r, a->arg)) < 0)
        return rc;
    a->tries++;
    ddp__http_run(l, r);
    atomic_fetch_add(&ddp__storage_counts.requests, 1);
    atomic_fetch_add(&ddp__storage_counts.retries, a->tries > 1);
    atomic_fetch_add(&ddp__storage_counts.bytes, (long long)r->body.len);
    return (rc = judge_exchange(r)) ? rc : a->judge(r, a->arg);
}

int ddp__http_ask(struct ddp__line *l, struct ddp__http *r,
                  struct ddp__asking *a)
{
    const struct ddp__error before = ddp__error_save();
    double begin = ddp__clock(), most = ddp__storage_settings()->timeout;

    for (a->tries = 0;;) {
        int rc = ask_once(l, r, a);
        double wait;

        if (rc != DDP__AGAIN) {
            if (rc == 0)
                ddp__error_restore(&before);
            return rc;
        }
        wait = pause_of(a->tries, r->wait);
        if (ddp__clock() - begin + wait > most)
            return ddp__fail(DDP_EIO,
                             "%s, %d times in %.0f s: a fault of the storage, "
                             "not of this file",
                             ddp_errmsg(), a->tries, ddp__clock() - begin);
        pause_for(l, wait);
    }
}
