# recipes/local.mk - options of whole runs, for imagenet train --config
# SPDX-License-Identifier: LGPL-2.1-or-later

recipesdir = $(pkgdatadir)/recipes
dist_recipes_DATA = \
    %D%/cifar10-94.conf \
    %D%/cifar10-96.conf \
    %D%/cifar10.conf \
    %D%/efficientnet_v2_s.conf \
    %D%/finetune.conf \
    %D%/mobilenet_v3_large.conf \
    %D%/resnet18.conf \
    %D%/resnet50.conf \
    %D%/resnet50_v2.conf \
    %D%/timm.conf \
    %D%/torchvision.conf
