# lib/base/local.mk - what every folder may use: errors, files, checksums, random numbers, half types
# SPDX-License-Identifier: LGPL-2.1-or-later

LIB_SOURCES += \
    %D%/array.c \
    %D%/array.h \
    %D%/cgroup.c \
    %D%/cgroup.h \
    %D%/clock.c \
    %D%/clock.h \
    %D%/clones.h \
    %D%/crc32.c \
    %D%/crc32.h \
    %D%/crc32c.c \
    %D%/crc32c.h \
    %D%/csv.c \
    %D%/csv.h \
    %D%/device.h \
    %D%/env.c \
    %D%/env.h \
    %D%/error.c \
    %D%/error.h \
    %D%/file.c \
    %D%/file.h \
    %D%/file_write.c \
    %D%/file_write.h \
    %D%/folder.c \
    %D%/folder.h \
    %D%/half.h \
    %D%/json_parse.c \
    %D%/json_parse.h \
    %D%/module.c \
    %D%/module.h \
    %D%/normal.c \
    %D%/normal.h \
    %D%/options.c \
    %D%/options.h \
    %D%/philox.h \
    %D%/printable.c \
    %D%/printable.h \
    %D%/proto.c \
    %D%/proto.h \
    %D%/random.c \
    %D%/random.h \
    %D%/team.c \
    %D%/team.h \
    %D%/thread.c \
    %D%/thread.h \
    %D%/toml.c \
    %D%/toml.h \
    %D%/toml_scalar.c \
    %D%/toml_scalar.h \
    %D%/version.c
