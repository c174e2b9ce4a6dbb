# iris.py - the smallest whole program in Python: iris.py [iris.csv]
# SPDX-License-Identifier: LGPL-2.1-or-later
import sys
import ddp

context = ddp.init(None)
iris = ddp.dataset_csv((sys.argv[1:] or ["iris.csv"])[0].encode(), b"class")
net = ddp.chain(ddp.dense_new(4, 16, None), ddp.act_new(1),  # DDP_RELU
                ddp.dense_new(16, 3, None))
print("loss %.4f, accuracy %.3f" % ddp.train(
    context, net, iris, optimizer=ddp.adam(1e-2), sub_batch=10, epochs=50))
ddp.dataset_free(iris)
ddp.chain_free(net)
ddp.finish(context)
