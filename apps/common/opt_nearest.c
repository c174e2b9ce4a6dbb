/* opt_nearest.c - the word that was probably meant
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stddef.h>
#include <string.h>

#include "common/opt_nearest.h"

enum { WORD_MAX = 40 };

static int min3(int a, int b, int c)
{
    int m = a < b ? a : b;

    return m < c ? m : c;
}

/* Edits (insert, delete, replace, swap neighbours) from a to b: optimal string
 * alignment, by its recurrence. */
static int distance(const char *a, const char *b)
{
    int d[WORD_MAX + 1][WORD_MAX + 1];
    int n = (int)strlen(a), m = (int)strlen(b);

    if (n > WORD_MAX || m > WORD_MAX)
        return WORD_MAX;
    for (int i = 0; i <= n; i++)
        d[i][0] = i;
    for (int j = 0; j <= m; j++)
        d[0][j] = j;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= m; j++) {
            int change = a[i - 1] != b[j - 1];

            d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1,
                           d[i - 1][j - 1] + change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = min3(d[i][j], d[i - 2][j - 2] + 1, WORD_MAX);
        }
    return d[n][m];
}

const char *opt_nearest(const char *word,
                        const char *(*next)(const void *arg, int i),
                        const void *arg)
{
    const char *best = NULL, *w;
    int best_d = 1 + (int)strlen(word) / 3;

    if (best_d > 3)
        best_d = 3;
    for (int i = 0; (w = next(arg, i)); i++) {
        int d = distance(word, w);

        if (d <= best_d) {
            best_d = d - 1;
            best = w;
        }
    }
    return best;
}
