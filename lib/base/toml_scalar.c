/* toml_scalar.c - numbers, dates and truth values of TOML
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/toml_scalar.h"

/* Copy a number without its underscores, each of which is between digits. */
static bool copy_digits(const char *from, size_t n, char *to, size_t size)
{
    for (size_t i = 0; i < n; i++) {
        if (from[i] == '_') {
            if (i == 0 || i + 1 == n || !isxdigit((unsigned char)from[i - 1]) ||
                !isxdigit((unsigned char)from[i + 1]) ||
                (i == 2 && *from == '0' && !isdigit((unsigned char)from[1])))
                return false;
            continue;
        }
        if (size-- < 2)
            return false;
        *to++ = from[i];
    }
    *to = 0;
    return true;
}

/* Whether text has this form: 9 is a digit, + digits or none. */
static const char *match(const char *text, const char *form)
{
    for (; text && *form; form++)
        if (*form == '9')
            text = isdigit((unsigned char)*text) ? text + 1 : NULL;
        else if (*form == '+')
            text += strspn(text, "0123456789");
        else
            text = *text == *form ? text + 1 : NULL;
    return text;
}

static const char *match_time(const char *text)
{
    const char *end = match(text, "99:99:99");

    return end && *end == '.' ? match(end, ".9+") : end;
}

/* A date, a time, or both; where it ends, or NULL. */
static const char *match_date(const char *text)
{
    const char *end = match(text, "9999-99-99"), *time;

    if (!end)
        return match_time(text);
    if (!*end || !strchr("Tt ", *end) || !(time = match_time(end + 1)))
        return end;
    if (*time == 'Z' || *time == 'z')
        return time + 1;
    if (*time == '+' || *time == '-')
        return match(time + 1, "99:99");
    return time;
}

static bool is_float(const char *s)
{
    const char *p = s + (*s == '+' || *s == '-');
    size_t n = strspn(p, "0123456789");
    bool fraction = false;

    if (n == 0 || (n > 1 && *p == '0'))
        return false;
    p += n;
    if (*p == '.') {
        fraction = true;
        if (!(n = strspn(++p, "0123456789")))
            return false;
        p += n;
    }
    if (*p == 'e' || *p == 'E') {
        fraction = true;
        p++;
        p += *p == '+' || *p == '-';
        if (!(n = strspn(p, "0123456789")))
            return false;
        p += n;
    }
    return fraction && !*p;
}

static json_t *integer_of(const char *s)
{
    static const struct {
        const char *prefix, *digits;
        int base;
    } kinds[] = {{"0x", "0123456789abcdefABCDEF", 16},
                 {"0o", "01234567", 8},
                 {"0b", "01", 2},
                 {"", "0123456789", 10}};
    int k = 0;
    const char *digits;
    long long value;

    while (strncmp(s, kinds[k].prefix, strlen(kinds[k].prefix)) != 0)
        k++;
    s += strlen(kinds[k].prefix);
    digits = s + (k == 3 && (*s == '+' || *s == '-'));
    if (!*digits || strspn(digits, kinds[k].digits) != strlen(digits) ||
        (k == 3 && *digits == '0' && digits[1]))
        return NULL;
    errno = 0;
    value = strtoll(s, NULL, kinds[k].base);
    return errno ? NULL : json_integer(value);
}

static json_t *number_of(const char *s)
{
    const char *name = s + (*s == '+' || *s == '-');

    if (!strcmp(name, "inf") || !strcmp(name, "nan"))
        return json_null(); /* jansson has neither */
    if (is_float(s)) {
        double value = strtod(s, NULL);

        return isfinite(value) ? json_real(value) : json_null();
    }
    return integer_of(s);
}

json_t *ddp__toml_scalar(const char **at)
{
    const char *end = match_date(*at);
    size_t n = strcspn(*at, " \t\r\n,]}#");
    char text[128];
    json_t *value;

    if (end) {
        *at = end;
        return json_null();
    }
    if (!strncmp(*at, "true", 4) || !strncmp(*at, "false", 5)) {
        value = json_boolean(**at == 't');
        *at += **at == 't' ? 4 : 5;
        return value;
    }
    if (!copy_digits(*at, n, text, sizeof(text)) || !(value = number_of(text)))
        return NULL;
    *at += n;
    return value;
}
