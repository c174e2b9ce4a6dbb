/* tap.h - test points on stdout, in the Test Anything Protocol
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     int main(void)
 *     {
 *         ok(add(1, 1) == 2, "one and one is two");
 *         is_int(add(2, 2), 4, "two and two");
 *         if (!have_gpu())
 *             skip(2, "no GPU");
 *         return done_testing();
 *     }
 */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAP_PRINTF(f, a) __attribute__((format(printf, f, a), unused))

static int tap_count, tap_failed, tap_planned = -1;

/* A sanitizer that ends the program must not take our lines with it. */
static __attribute__((constructor)) void tap_line_buffer(void)
{
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
}

/* Prints a text as one line that TAP cannot misread: '#' starts a directive. */
static __attribute__((unused)) void tap_text(const char *fmt, va_list ap)
{
    char text[1024];

    vsnprintf(text, sizeof(text), fmt, ap);
    for (char *s = text; *s; s++)
        putchar(*s == '#' ? '+' : *s == '\n' ? ' ' : *s);
}

/* A comment; each line of the text gets its own '#'. */
static TAP_PRINTF(1, 2) void diag(const char *fmt, ...)
{
    char text[4096], *save, *line;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    for (line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        printf("# %s\n", line);
}

static TAP_PRINTF(4, 5) int tap_point(int pass, const char *file, int line,
                                      const char *fmt, ...)
{
    va_list ap;

    printf("%s %d - ", pass ? "ok" : "not ok", ++tap_count);
    va_start(ap, fmt);
    tap_text(fmt, ap);
    va_end(ap);
    putchar('\n');
    if (!pass) {
        tap_failed++;
        diag("failed at %s:%d", file, line);
    }
    return pass;
}

/* One test point: a condition, and a sentence saying what holds if it does.
 * Returns whether it passed. */
#define ok(cond, ...) tap_point(!!(cond), __FILE__, __LINE__, __VA_ARGS__)
#define pass(...) tap_point(1, __FILE__, __LINE__, __VA_ARGS__)
#define fail(...) tap_point(0, __FILE__, __LINE__, __VA_ARGS__)

/* Two integers are equal; prints both when they are not. */
#define is_int(got, want, ...)                                                 \
    __extension__({                                                            \
        long long tap_got = (got), tap_want = (want);                          \
        int tap_ok = ok(tap_got == tap_want, __VA_ARGS__);                     \
        if (!tap_ok)                                                           \
            diag("got %lld, want %lld", tap_got, tap_want);                    \
        tap_ok;                                                                \
    })

/* Two strings are equal; NULL equals NULL only. */
#define is_str(got, want, ...)                                                 \
    __extension__({                                                            \
        const char *tap_got = (got), *tap_want = (want);                       \
        int tap_ok = ok(tap_got && tap_want ? !strcmp(tap_got, tap_want)       \
                                            : tap_got == tap_want,             \
                        __VA_ARGS__);                                          \
        if (!tap_ok)                                                           \
            diag("got \"%s\", want \"%s\"", tap_got ? tap_got : "(null)",      \
                 tap_want ? tap_want : "(null)");                              \
        tap_ok;                                                                \
    })

/* |got - want| <= tol; a NaN never passes. */
#define is_near(got, want, tol, ...)                                           \
    __extension__({                                                            \
        double tap_got = (got), tap_want = (want), tap_tol = (tol);            \
        double tap_d =                                                         \
            tap_got > tap_want ? tap_got - tap_want : tap_want - tap_got;      \
        int tap_ok = ok(tap_d <= tap_tol, __VA_ARGS__);                        \
        if (!tap_ok)                                                           \
            diag("got %.9g, want %.9g within %.3g", tap_got, tap_want,         \
                 tap_tol);                                                     \
        tap_ok;                                                                \
    })

/* n points that cannot be tried here, and why. */
static TAP_PRINTF(2, 3) void skip(int n, const char *fmt, ...)
{
    va_list ap;

    while (n-- > 0) {
        printf("ok %d # SKIP ", ++tap_count);
        va_start(ap, fmt);
        tap_text(fmt, ap);
        va_end(ap);
        putchar('\n');
    }
}

/* The whole program cannot be tried here: prints the reason and ends it. */
static TAP_PRINTF(1, 2) void skip_all(const char *fmt, ...)
{
    va_list ap;

    printf("1..0 # SKIP ");
    va_start(ap, fmt);
    tap_text(fmt, ap);
    va_end(ap);
    putchar('\n');
    exit(0);
}

/* Nothing after this can be tried: prints the reason and ends the program. */
static TAP_PRINTF(1, 2) void bail_out(const char *fmt, ...)
{
    va_list ap;

    printf("Bail out! ");
    va_start(ap, fmt);
    tap_text(fmt, ap);
    va_end(ap);
    putchar('\n');
    exit(1);
}

/* How many points there will be, when that is known before. */
static __attribute__((unused)) void plan(int n)
{
    printf("1..%d\n", tap_planned = n);
}

/* Ends the test; what main() returns. */
static __attribute__((unused)) int done_testing(void)
{
    if (tap_planned < 0)
        printf("1..%d\n", tap_count);
    else if (tap_planned != tap_count)
        diag("planned %d points, ran %d", tap_planned, tap_count);
    if (tap_failed)
        diag("%d of %d failed", tap_failed, tap_count);
    return tap_failed || (tap_planned >= 0 && tap_planned != tap_count);
}

#endif
