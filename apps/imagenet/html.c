/* html.c - text of unknown origin in a page
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ddp.h"

#include "html.h"

static char *printable(const char *text)
{
    char *copy = strdup(text);

    if (copy)
        ddp_printable(copy);
    return copy;
}

void html_text(FILE *f, const char *text)
{
    char *copy = printable(text);

    for (const char *s = copy; s && *s; s++)
        switch (*s) {
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        case '&':
            fputs("&amp;", f);
            break;
        case '"':
            fputs("&quot;", f);
            break;
        case '\'':
            fputs("&#39;", f);
            break;
        default:
            fputc(*s, f);
        }
    free(copy);
}

/* "</script>" and "<!--" must not be seen in it. */
void html_json_text(FILE *f, const char *text)
{
    char *copy = printable(text);

    fputc('"', f);
    for (const char *s = copy; s && *s; s++)
        if (strchr("<>&\"\\'", *s))
            fprintf(f, "\\u%04x", (unsigned char)*s);
        else
            fputc(*s, f);
    fputc('"', f);
    free(copy);
}

void html_json_number(FILE *f, double v)
{
    if (isfinite(v))
        fprintf(f, "%.6g", v);
    else
        fputs("null", f);
}
