# lib/storage/local.mk - where files of data are: folders of this machine, S3, web servers
# SPDX-License-Identifier: LGPL-2.1-or-later

LIB_SOURCES += \
    %D%/copies.c \
    %D%/copies.h \
    %D%/local.c \
    %D%/local.h \
    %D%/remote.h \
    %D%/settings.c \
    %D%/settings.h \
    %D%/storage.c \
    %D%/storage.h \
    %D%/tar.h \
    %D%/visits.c \
    %D%/visits.h

if HAVE_CURL
LIB_SOURCES += \
    %D%/cache.c \
    %D%/cache.h \
    %D%/credentials.c \
    %D%/credentials.h \
    %D%/fetch.c \
    %D%/fetch.h \
    %D%/http.c \
    %D%/http.h \
    %D%/list.c \
    %D%/list.h \
    %D%/listing.c \
    %D%/listing.h \
    %D%/profile.c \
    %D%/profile.h \
    %D%/remote.c \
    %D%/s3.c \
    %D%/s3.h \
    %D%/server.c \
    %D%/server.h \
    %D%/servers.c \
    %D%/servers.h \
    %D%/tree.c \
    %D%/tree.h \
    %D%/web.c \
    %D%/web.h
else
LIB_SOURCES += %D%/none.c
endif

if HAVE_ARCHIVE
LIB_SOURCES += %D%/tar.c
else
LIB_SOURCES += %D%/tar_none.c
endif
