/* listing.c - what S3 answers in XML
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Keys are asked for in the encoding of URLs, since XML has no way to write
 * some characters.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <expat.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "storage/listing.h"

enum { TEXT_MAX = 4096, DEPTH_MAX = 8 };

/* One element's children come out as text. */
struct reader {
    struct ddp__page *page; /* NULL: an error is read */
    XML_Parser xml;
    int depth, rc;
    bool root; /* it is a listing, or an error */
    char text[TEXT_MAX];
    size_t len;
    char key[TEXT_MAX], etag[128], size[32];
    struct ddp__reason *reason; /* of an error */
};

static void stop(struct reader *r, int rc)
{
    if (r->rc == 0)
        r->rc = rc;
    XML_StopParser(r->xml, XML_FALSE);
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* Decode a key in place. */
static int decode_key(char *key)
{
    char *out = key;

    for (const char *in = key; *in; in++) {
        if (*in == '%') {
            int a = hex(in[1]), b = a < 0 ? -1 : hex(in[2]);

            if (b < 0 || a + b == 0)
                return ddp__fail(DDP_EDATA,
                                 "the listing has the key \"%.200s\", which is "
                                 "not encoded as a URL",
                                 key);
            *out++ = (char)(16 * a + b);
            in += 2;
        } else {
            *out++ = *in == '+' ? ' ' : *in;
        }
    }
    *out = 0;
    return 0;
}

static int take_file(struct reader *r)
{
    char *end;
    int64_t size;
    int rc;

    errno = 0;
    size = strtoll(r->size, &end, 10);
    if (!isdigit((unsigned char)*r->size) || *end || errno || !*r->key)
        return ddp__fail(DDP_EDATA,
                         "the listing has \"%.200s\" with the size \"%s\"",
                         r->key, r->size);
    if ((rc = decode_key(r->key)) < 0)
        return rc;
    return r->page->found(r->key, r->etag, size, r->page->arg);
}

static int take_folder(struct reader *r)
{
    int rc = decode_key(r->key);

    return rc < 0 ? rc : r->page->found(r->key, NULL, 0, r->page->arg);
}

static void XMLCALL begin(void *arg, const char *name, const char **attribute)
{
    struct reader *r = arg;

    (void)attribute;
    r->depth++;
    r->len = 0;
    *r->text = 0;
    if (r->depth == 1)
        r->root = !strcmp(name, r->page ? "ListBucketResult" : "Error");
    if (r->depth == 2)
        *r->key = *r->etag = *r->size = 0;
    if (r->depth > DEPTH_MAX || (r->page && !r->root))
        stop(r,
             ddp__fail(DDP_EIO, "the answer is no listing but <%.40s>", name));
}

static int take_text(char *field, size_t size, const struct reader *r)
{
    if (r->len >= size)
        return ddp__fail(DDP_EIO,
                         "the listing has a text of %zu bytes, "
                         "expected fewer than %zu",
                         r->len, size);
    memcpy(field, r->text, r->len + 1);
    return 0;
}

/* <Contents><Key>...</Key> and <CommonPrefixes><Prefix>...</Prefix>. */
static int end_inner(struct reader *r, const char *name)
{
    if (!strcmp(name, "Key") || !strcmp(name, "Prefix"))
        return take_text(r->key, sizeof(r->key), r);
    if (!strcmp(name, "ETag"))
        return take_text(r->etag, sizeof(r->etag), r);
    if (!strcmp(name, "Size"))
        return take_text(r->size, sizeof(r->size), r);
    return 0;
}

static int end_item(struct reader *r, const char *name)
{
    if (!strcmp(name, "Contents"))
        return take_file(r);
    if (!strcmp(name, "CommonPrefixes"))
        return take_folder(r);
    if (!strcmp(name, "IsTruncated"))
        r->page->more = !strcmp(r->text, "true");
    else if (!strcmp(name, "NextContinuationToken"))
        return take_text(r->page->token, sizeof(r->page->token), r);
    return 0;
}

static int end_reason(struct reader *r, const char *name)
{
    struct ddp__reason *reason = r->reason;

    if (!strcmp(name, "Code"))
        return take_text(reason->code, sizeof(reason->code), r);
    if (!strcmp(name, "Region"))
        return take_text(reason->region, sizeof(reason->region), r);
    return 0;
}

static void XMLCALL end(void *arg, const char *name)
{
    struct reader *r = arg;
    int rc = 0;

    if (r->rc < 0)
        return;
    if (!r->page && r->root && r->depth == 2)
        rc = end_reason(r, name);
    if (r->page && r->depth == 3)
        rc = end_inner(r, name);
    else if (r->page && r->depth == 2)
        rc = end_item(r, name);
    r->depth--;
    r->len = 0;
    *r->text = 0;
    if (rc < 0)
        stop(r, rc);
}

static void XMLCALL text(void *arg, const char *s, int n)
{
    struct reader *r = arg;

    if (r->rc < 0)
        return;
    if ((size_t)n >= TEXT_MAX - r->len) {
        stop(r, ddp__fail(DDP_EDATA,
                          "the listing has a text of more than %d "
                          "bytes",
                          TEXT_MAX));
        return;
    }
    memcpy(r->text + r->len, s, (size_t)n);
    r->len += (size_t)n;
    r->text[r->len] = 0;
}

/* No document of S3's defines entities. */
static void XMLCALL declaration(void *arg, const char *name, const char *system,
                                const char *public, int internal)
{
    (void)name;
    (void)system;
    (void)public;
    (void)internal;
    stop(arg, ddp__fail(DDP_EIO, "the answer has a document type"));
}

static int parse(struct reader *r, const void *data, size_t len)
{
    enum XML_Status done;

    if (!(r->xml = XML_ParserCreate(NULL)))
        return ddp__fail(DDP_ENOMEM, "out of memory for a listing");
    XML_SetUserData(r->xml, r);
    XML_SetElementHandler(r->xml, begin, end);
    XML_SetCharacterDataHandler(r->xml, text);
    XML_SetStartDoctypeDeclHandler(r->xml, declaration);
    done = XML_Parse(r->xml, data, (int)len, XML_TRUE);
    if (r->rc == 0 && done != XML_STATUS_OK)
        r->rc = ddp__fail(DDP_EIO, "the answer is no listing: line %lu: %s",
                          XML_GetCurrentLineNumber(r->xml),
                          XML_ErrorString(XML_GetErrorCode(r->xml)));
    XML_ParserFree(r->xml);
    return r->rc;
}

int ddp__page_read(struct ddp__page *p, const void *data, size_t len)
{
    struct reader r = {.page = p};

    p->more = false;
    *p->token = 0;
    return parse(&r, data, len);
}

void ddp__reason_read(const void *data, size_t len, struct ddp__reason *reason)
{
    struct ddp__error before = ddp__error_save();
    struct reader r = {.reason = reason};

    *reason = (struct ddp__reason){0};
    parse(&r, data, len);
    ddp__error_restore(&before);
    for (char *p = reason->code; *p; p++)
        if (!isalnum((unsigned char)*p))
            *p = '?';
}
