#!/usr/bin/env python3
# oracle_image.py OUT [IMAGES] - images of odd kinds, and what torchvision makes
# of them; test_pillow.c compares.
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Writes OUT/index, a line for each comparison:
#   box IMAGE EXPECTED size x y w h flip filter   resized_crop(), then hflip()
#   val IMAGE EXPECTED size resize filter         resize(), center_crop()
#   colour RAW EXPECTED size jitter gray blur order factors    of raw bytes
#   change RAW EXPECTED size filter kind by fill   torchvision's _apply_op()
#   draw POLICY p kind by kind by           what it does to an image of 61 pixels
#   bad IMAGE                               Pillow refuses the file
# filter is a row of FILTERS; flip 1 is hflip(), 2 vflip().  order is that of
# brightness, contrast, saturation, hue.  RAW, EXPECTED are bytes (size, size, 3).  With IMAGES, the files of that folder
# are compared too.  Exits with 77 where Pillow or torchvision is missing.

import collections
import io
import os
import random
import struct
import sys

try:
    import numpy as np
    from PIL import Image, features
    import torchvision.transforms.autoaugment as A
    import torchvision.transforms.functional as F
except ImportError as e:
    print(e, file=sys.stderr)
    sys.exit(77)

random.seed(1)
rng = np.random.default_rng(1)
FILTERS = (F.InterpolationMode.BILINEAR, F.InterpolationMode.BICUBIC,
           F.InterpolationMode.BOX, F.InterpolationMode.HAMMING,
           F.InterpolationMode.LANCZOS)
JITTERS = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation,
           F.adjust_hue)


def picture(w, h, c=3):
    shape = (h // 7 + 2, w // 7 + 2) + ((c,) if c > 1 else ())
    small = Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8))
    a = np.array(small.resize((w, h), Image.BICUBIC)).astype(int)
    a += rng.integers(-20, 20, a.shape)
    return Image.fromarray(a.clip(0, 255).astype(np.uint8))


def encode(image, form='JPEG', **options):
    b = io.BytesIO()
    image.save(b, form, **options)
    return b.getvalue()


def exif(orientation):
    e = Image.Exif()
    e[0x112] = orientation
    return e.tobytes()


def larger_canvas(gif, w, h, left=0, top=0):
    """The same picture at a place of a canvas of another size."""
    at = 13 + 3 * (2 << (gif[10] & 7))
    while gif[at] == 0x21:
        at += 2
        while gif[at]:
            at += gif[at] + 1
        at += 1
    assert gif[at] == 0x2c
    return (gif[:6] + struct.pack('<HH', w, h) + gif[10:at + 1]
            + struct.pack('<HH', left, top) + gif[at + 5:])


def kinds():
    for s in (0, 1, 2):
        yield f'sampling{s}', encode(picture(301, 203), subsampling=s)
        yield f'progressive{s}', encode(picture(203, 301), subsampling=s,
                                        progressive=True)
    yield 'gray', encode(picture(211, 133, 1))
    yield 'cmyk', encode(picture(110, 150).convert('CMYK'))
    yield 'cmyk-progressive', encode(picture(110, 150).convert('CMYK'),
                                     progressive=True)
    yield 'optimized', encode(picture(99, 98), optimize=True, quality=30)
    yield 'thin', encode(picture(20, 300).crop((0, 0, 1, 300)))
    yield 'flat', encode(picture(300, 20).crop((0, 0, 300, 1)))
    yield 'point', encode(picture(20, 20).crop((0, 0, 1, 1)))
    yield 'turned', encode(picture(90, 60), exif=exif(6))
    yield 'trailing', encode(picture(90, 60)) + b'some bytes more'
    yield 'png', encode(picture(120, 90), 'PNG')
    yield 'png-palette', encode(picture(120, 90).quantize(64), 'PNG')
    yield 'png-few', encode(picture(120, 90).quantize(4), 'PNG')
    yield 'png-clear', encode(picture(120, 90).quantize(64), 'PNG',
                              transparency=5)
    yield 'png-alpha', encode(picture(77, 55, 4), 'PNG')
    yield 'png-gray', encode(picture(77, 55, 1), 'PNG')
    yield 'png-bits', encode(picture(77, 55, 1).convert('1'), 'PNG')
    yield 'png-gray-alpha', encode(picture(77, 55, 1).convert('LA'), 'PNG')
    yield 'bmp', encode(picture(77, 55), 'BMP')
    yield 'bmp-alpha', encode(picture(77, 55, 4), 'BMP')
    yield 'bmp-gray', encode(picture(78, 55, 1), 'BMP')
    yield 'bmp-palette', encode(picture(79, 55).quantize(64), 'BMP')
    yield 'bmp-bits', encode(picture(75, 55, 1).convert('1'), 'BMP')
    yield 'webp', encode(picture(121, 90), 'WEBP', quality=70)
    yield 'webp-small', encode(picture(300, 210), 'WEBP', quality=5)
    yield 'webp-lossless', encode(picture(90, 61), 'WEBP', lossless=True)
    yield 'webp-point', encode(picture(20, 20).crop((0, 0, 1, 1)), 'WEBP')
    opaque = picture(90, 61, 4)
    opaque.putalpha(picture(90, 61, 1).point(lambda a: max(a, 1)))
    yield 'webp-alpha', encode(opaque, 'WEBP', lossless=True)
    yield 'gif', encode(picture(77, 55).quantize(64), 'GIF')
    yield 'gif-rows', encode(picture(77, 55).quantize(64), 'GIF', interlace=0)
    yield 'gif-gray', encode(picture(77, 55, 1), 'GIF')
    yield 'gif-clear', encode(picture(77, 55).quantize(64), 'GIF',
                              transparency=5)
    yield 'gif-frames', encode(
        picture(77, 55).quantize(64), 'GIF', save_all=True,
        append_images=[picture(60, 55).quantize(32)])
    yield 'gif-canvas', larger_canvas(
        encode(picture(77, 55).quantize(64), 'GIF'), 100, 60, 9, 3)
    yield 'gif-clear-canvas', larger_canvas(
        encode(picture(77, 55).quantize(64), 'GIF', transparency=5), 99, 58)
    yield 'gif-outside', larger_canvas(
        encode(picture(77, 55).quantize(64), 'GIF'), 50, 20, 9, 3)
    for name, packing in (('', None), ('-lzw', 'tiff_lzw'),
                          ('-bits', 'packbits'), ('-zip', 'tiff_deflate'),
                          ('-jpeg', 'jpeg')):
        yield 'tiff' + name, encode(picture(77, 55), 'TIFF',
                                    compression=packing)
    yield 'tiff-gray', encode(picture(77, 55, 1), 'TIFF')
    yield 'tiff-palette', encode(picture(77, 55).quantize(64), 'TIFF')
    yield 'tiff-black', encode(picture(75, 55, 1).convert('1'), 'TIFF')
    yield 'tiff-fax', encode(picture(75, 55, 1).convert('1'), 'TIFF',
                             compression='group4')
    yield 'tiff-alpha', encode(picture(77, 55, 4), 'TIFF')
    if 'avif' in features.modules and features.check('avif'):
        for s in ('4:2:0', '4:4:4', '4:0:0'):
            yield 'avif-' + s[2:], encode(picture(121, 90), 'AVIF',
                                          subsampling=s)
        yield 'avif-alpha', encode(opaque, 'AVIF')


def damaged():
    b = encode(picture(200, 150))
    yield 'half', b[:len(b) // 2]
    yield 'endless', b[:-2]
    yield 'empty', b''
    yield 'header', b[:200]
    yield 'text', b'this is not an image'
    yield 'png-half', encode(picture(200, 150), 'PNG')[:20000]
    yield 'bmp-half', encode(picture(200, 150), 'BMP')[:20000]
    yield 'webp-half', encode(picture(200, 150), 'WEBP')[:2000]
    yield 'gif-half', encode(picture(200, 150).quantize(64), 'GIF')[:9000]
    yield 'tiff-half', encode(picture(200, 150), 'TIFF')[:20000]
    yield 'tiff-lzw-half', encode(picture(200, 150), 'TIFF',
                                  compression='tiff_lzw')[:20000]


class Writer:
    def __init__(self, out):
        self.out = out
        self.index = open(os.path.join(out, 'index'), 'w')
        self.count = 0

    def expected(self, image):
        self.count += 1
        name = os.path.join(self.out, f'{self.count}.raw')
        with open(name, 'wb') as f:
            f.write(np.array(image).tobytes())
        return name

    def compare(self, path, boxes):
        image = Image.open(path).convert('RGB')
        for _ in range(boxes):
            w, h = (random.randint(1, n) for n in image.size)
            x = random.randint(0, image.width - w)
            y = random.randint(0, image.height - h)
            size = random.choice([8, 33, 64, 224])
            flip = random.randint(0, 3)
            kind = random.randrange(len(FILTERS))
            want = F.resized_crop(image, y, x, h, w, [size, size],
                                  FILTERS[kind])
            if flip & 1:
                want = F.hflip(want)
            if flip & 2:
                want = F.vflip(want)
            print('box', path, self.expected(want), size, x, y, w, h, flip,
                  kind, file=self.index)
        for size, resize, kind in ((224, 256, 0), (32, 32, 0), (50, 77, 0),
                                   (224, 256, 1), (33, 33, 1)):
            want = F.center_crop(F.resize(image, resize, FILTERS[kind]),
                                 [size, size])
            print('val', path, self.expected(want), size, resize, kind,
                  file=self.index)


    def compare_colours(self, steps):
        """steps: which of brightness, contrast, saturation, hue, gray, blur"""
        size = random.choice([13, 32, 64, 224])
        image = picture(size, size)
        raw = self.expected(image)
        order = random.sample(range(4), 4)
        factors = [random.uniform(0, 3) for _ in range(3)]
        factors = [np.float32(f) for f in factors + [random.uniform(-.5, .5)]]
        factors = [float(f) if i in steps else float(i < 3)
                   for i, f in enumerate(factors)]
        for i in order:
            if i in steps:
                image = JITTERS[i](image, factors[i])
        if 4 in steps:
            image = F.rgb_to_grayscale(image, 3)
        blur = float(np.float32(random.uniform(0.1, 2))) if 5 in steps else 0
        if blur:
            image = F.gaussian_blur(image, 23, [blur, blur])
        print('colour', raw, self.expected(image), size, int(min(steps) < 4),
              int(4 in steps), blur, *order, *factors, file=self.index)


    def compare_change(self, image, kind, by, filter, fill):
        name = CHANGES[kind]
        if name == 'SolarizeAdd':
            want = image.point([min(255, v + int(by)) if v < 128 else v
                                for v in range(256)] * 3)
        else:
            off = name in ('Brightness', 'Color', 'Contrast', 'Sharpness')
            want = A._apply_op(image, name, by - 1 if off else by,
                               FILTERS[filter], fill)
        print('change', self.expected(image), self.expected(want), image.width,
              filter, kind, repr(by), *fill, file=self.index)

    def compare_changes(self):
        """All operations, at all strengths of all policies."""
        flat = Image.new('RGB', (16, 16), (7, 7, 200))
        for kind, by in sorted(self.strengths()):
            size = random.choice([16, 33, 64])
            fill = random.choice([[0, 0, 0], [124, 116, 104]])
            levels = CHANGES[kind] in CHANGES[10:]
            if levels:
                size = 66  # Equalize divides their number by 255
            images = (picture(size, size), low(size), flat)
            for image in images if levels else images[:1]:
                self.compare_change(image, kind, by, random.randrange(2), fill)

    def strengths(self):
        seen = {(CHANGES.index('SolarizeAdd'), float(v)) for v in (11, 99, 110)}
        for all in policies().values():
            seen |= {change for pair in all for change in pair}
        return seen

    def list_draws(self):
        for name, all in policies().items():
            for (a, b), p in sorted(all.items()):
                print('draw', name, repr(p), *a, *b, file=self.index)


# In the order of enum ddp__change_kind.
CHANGES = ('Identity', 'ShearX', 'ShearY', 'TranslateX', 'TranslateY', 'Rotate',
           'Brightness', 'Color', 'Contrast', 'Sharpness', 'Posterize',
           'Solarize', 'SolarizeAdd', 'AutoContrast', 'Equalize', 'Invert')


def low(size):
    """Of few levels, none of them 0 or 255, the last pixel of others."""
    a = np.array(picture(size, size)) // 8 + 100
    a[-1, -1] = 90, 140, 95
    return Image.fromarray(a.astype(np.uint8))


def results(op, strength, signed, bins):
    """What an operation does at one of these strengths, each as likely."""
    bins = bins if strength.ndim else [0]
    for i in bins:
        by = float(strength[i]) if strength.ndim else 0.
        for v in (by, -by) if signed else (by,):
            if op.startswith('Translate'):
                v = float(int(v))
            if op in ('Brightness', 'Color', 'Contrast', 'Sharpness'):
                v += 1
            yield 1 / len(bins) / (2 if signed else 1), (CHANGES.index(op), v)


NOTHING = (0, 0.)


def one_of(space, bins):
    all = collections.Counter()
    for op, meta in space.items():
        for p, change in results(op, *meta, bins):
            all[change, NOTHING] += p / len(space)
    return all


def imagenet():
    auto, all = A.AutoAugment(), collections.Counter()
    space = auto._augmentation_space(10, SIDE)

    def maybe(op, p, at):
        yield 1 - p, NOTHING
        for q, change in results(op, *space[op], [at]):
            yield p * q, change

    for first, second in auto.policies:
        for p, a in maybe(*first):
            for q, b in maybe(*second):
                all[a, b] += p * q / len(auto.policies)
    return +all


SIDE = (61, 61)


def policies():
    """The changes that torchvision's policies make, and how likely they are."""
    ra = A.RandAugment()._augmentation_space(31, SIDE)
    return {'ta_wide': one_of(A.TrivialAugmentWide()._augmentation_space(31),
                              range(31)),
            'ra-m9': one_of(ra, [9]), 'ra-m30': one_of(ra, [30]),
            'augmix-m4': one_of(A.AugMix()._augmentation_space(10, SIDE),
                                range(4)),
            'imagenet': imagenet()}


def main():
    out = sys.argv[1]
    w = Writer(out)
    for name, data in kinds():
        path = os.path.join(out, name + '.JPEG')
        with open(path, 'wb') as f:
            f.write(data)
        w.compare(path, 12)
    for i in range(6):
        for _ in range(12):
            w.compare_colours({i})
    for _ in range(60):
        w.compare_colours(set(random.sample(range(6), 3)))
    w.compare_changes()
    w.list_draws()
    for name, data in damaged():
        path = os.path.join(out, name + '.JPEG')
        with open(path, 'wb') as f:
            f.write(data)
        try:
            Image.open(path).convert('RGB')
            sys.exit(f'Pillow reads {name}')
        except OSError:
            print('bad', path, file=w.index)
    for folder, _, names in os.walk(sys.argv[2] if len(sys.argv) > 2 else ''):
        for name in sorted(names):
            if name.lower().endswith(('.jpg', '.jpeg', '.png')):
                w.compare(os.path.join(folder, name), 4)


main()
