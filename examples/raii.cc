/* raii.cc - libddp from C++: objects that free themselves
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     raii [iris.csv]
 *
 * Members and local variables are freed in reverse order, which is the one that
 * ddp.h asks for: the trainer first, then data and chain, ddp last.
 */
#include <ddp.h>
#include <cstdio>
#include <memory>
#include <stdexcept>

/* A pointer that calls Free; it throws if a constructor returned NULL. */
template <typename T, void (*Free)(T *)>
struct Freed : std::unique_ptr<T, void (*)(T *)> {
    explicit Freed(T *p) : std::unique_ptr<T, void (*)(T *)>(p, Free)
    {
        if (!p)
            throw std::runtime_error(ddp_errmsg());
    }
    operator T *() const
    {
        return this->get();
    }
};
using Ddp = Freed<ddp_t, ddp_finish>;
using Dataset = Freed<ddp_dataset_t, ddp_dataset_free>;
using Chain = Freed<ddp_chain_t, ddp_chain_free>;
using Trainer = Freed<ddp_trainer_t, ddp_trainer_free>;

static void check(int rc)
{
    if (rc < 0)
        throw std::runtime_error(ddp_errmsg());
}

static void train(const char *csv)
{
    Ddp ddp(ddp_init(nullptr));
    Dataset iris(ddp_dataset_csv(csv, "class"));
    Chain net(ddp_chain_new(ddp_dense_new(4, 16, nullptr), ddp_relu_new(),
                            ddp_dense_new(16, 3, nullptr), DDP_END));
    ddp_train_config config;
    ddp_metrics m;

    ddp_train_config_init(&config);
    config.optimizer = ddp_adam(1e-2f);
    config.sub_batch = 10;
    config.epochs = 50;
    Trainer trainer(ddp_trainer_new(ddp, net, iris, &config));
    check(ddp_trainer_train(trainer));
    check(ddp_trainer_evaluate(trainer, iris, &m));
    std::printf("loss %.4f, %.1f %% right\n", m.loss, 100 * m.top1);
}

int main(int argc, char **argv)
{
    try {
        train(argc > 1 ? argv[1] : "iris.csv");
    } catch (const std::exception &e) {
        std::fprintf(stderr, "raii: %s\n", e.what());
        return 1;
    }
}
