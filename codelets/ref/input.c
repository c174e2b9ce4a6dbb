/* input.c - from samples to activations, in plain C */
#include "config.h"
#include "ref.h"

/* Where element i of y comes from in x. */
static size_t source(const struct ddp__task *t, size_t i)
{
    const struct ddp_shape *s = &t->call->buf[0].shape;
    size_t c = (size_t)s->c, w = (size_t)s->w, row = i / (w * c);
    size_t x = i / c % w;

    if (!t->call->input.flip)
        return i;
    return (row * w + (w - 1 - x)) * c + i % c;
}

/* y = (x / 255 - mean) / std, by channel.  Channels past the fourth are
 * treated like the fourth. */
int ddp__ref_input_u8(const struct ddp__task *t)
{
    struct ddp__ref_buf x = ddp__ref_buf(t, 0), y = ddp__ref_buf(t, 1);
    const uint8_t *pixel = x.data;

    for (size_t i = 0; i < ddp__len(t, 0); i++) {
        size_t c = i % (size_t)x.c;
        double mean = t->call->input.mean[c < 4 ? c : 3];
        double std = t->call->input.std[c < 4 ? c : 3];

        ddp__ref_write(&y, i, (pixel[source(t, i)] / 255.0 - mean) / std);
    }
    return 0;
}

/* y = x */
int ddp__ref_input_f32(const struct ddp__task *t)
{
    struct ddp__ref_buf x = ddp__ref_buf(t, 0), y = ddp__ref_buf(t, 1);

    for (size_t i = 0; i < ddp__len(t, 0); i++)
        ddp__ref_write(&y, i, ddp__ref_read(&x, source(t, i)));
    return 0;
}
