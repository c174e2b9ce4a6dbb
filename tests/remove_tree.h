/* remove_tree.h - remove a folder with all that is in it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef REMOVE_TREE_H
#define REMOVE_TREE_H

#include <ftw.h>
#include <stdio.h>

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *f)
{
    (void)st;
    (void)type;
    (void)f;
    return remove(path);
}

static void remove_tree(const char *folder)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
