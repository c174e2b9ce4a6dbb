/* html.h - text of unknown origin in a page
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef HTML_H
#define HTML_H

#include <stdio.h>

/* Text as content or in a quoted attribute: what HTML may obey is escaped, what
 * is no text (control characters, other bytes than UTF-8) is replaced. */
void html_text(FILE *f, const char *text);

/* Text as JSON inside a script element, with its quotation marks. */
void html_json_text(FILE *f, const char *text);

/* A number as JSON; null if it is not finite. */
void html_json_number(FILE *f, double v);

#endif
