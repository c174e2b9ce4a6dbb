dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl DDP_COMPLETION_DIR(SHELL, DIR) - where the shell looks for completions, by
dnl default in DIR below datadir
AC_DEFUN([DDP_COMPLETION_DIR], [
    AC_ARG_WITH([$1-completion-dir],
        [AS_HELP_STRING([--with-$1-completion-dir=DIR],
            [where completions for $1 go [DATADIR/$2]])],
        [], [with_$1_completion_dir='${datadir}/$2'])
    AS_CASE([$with_$1_completion_dir],
        [yes], [with_$1_completion_dir='${datadir}/$2'])
    AC_SUBST([$1compdir], [$with_$1_completion_dir])
    AM_CONDITIONAL(m4_toupper([INSTALL_$1_COMPLETION]),
        [test "$with_$1_completion_dir" != no])
])
