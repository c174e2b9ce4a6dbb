dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl DDP_CHECK_JPEG
dnl Finds libjpeg-turbo; other versions of libjpeg cannot decode part of an image.
dnl Sets JPEG_CFLAGS, JPEG_LIBS and JPEG_VERSION; it is an error if not found.
AC_DEFUN([DDP_CHECK_JPEG], [
    PKG_CHECK_MODULES([JPEG], [libjpeg])
    JPEG_VERSION=`$PKG_CONFIG --modversion libjpeg`
    ddp_LIBS=$LIBS
    LIBS="$JPEG_LIBS $LIBS"
    AC_CHECK_FUNC([jpeg_crop_scanline], [],
        [AC_MSG_ERROR([libjpeg has no jpeg_crop_scanline(): \
libjpeg-turbo 1.5 or later is needed])])
    LIBS=$ddp_LIBS
])
