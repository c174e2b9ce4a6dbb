/* models.h - the named models: one file per family fills a row of models.c */
#ifndef DDP_MODELS_H
#define DDP_MODELS_H

#include "ddp.h"

ddp_chain_t *ddp__mlp_new(const struct ddp_model_options *o);
ddp_chain_t *ddp__resnet9_new(const struct ddp_model_options *o);
ddp_chain_t *ddp__resnet18_new(const struct ddp_model_options *o);
ddp_chain_t *ddp__resnet34_new(const struct ddp_model_options *o);
ddp_chain_t *ddp__resnet50_new(const struct ddp_model_options *o);
ddp_chain_t *ddp__resnet101_new(const struct ddp_model_options *o);
ddp_chain_t *ddp__resnet152_new(const struct ddp_model_options *o);

#endif
