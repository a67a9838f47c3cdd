#include "host.h"

namespace esper {

HostShape::HostShape(const EsperHost& host, int border) {
    int height = host.height, width = host.width, in = host.in_channels, at = 0;
    classes = host.classes;
    for (int b = 0; b < host.levels; b++) {
        LevelShape level{};
        level.in = in;
        level.out = host.base << b;
        level.plane = plane_of(height, width, border);
        level.wide = host.kernel;
        level.taps = level.plane.single() ? 1 : host.kernel;
        level.pools = b < host.pools;
        if (level.pools) height /= 2, width /= 2;
        level.after = plane_of(height, width, border);
        level.kernel = at;
        level.gain = at + level.out * in * host.kernel * host.kernel;
        level.bias = level.gain + level.out;
        at = level.bias + level.out;
        in = level.out;
        levels.push_back(level);
    }
    last = plane_of(height, width, border);
    features = in;
    head = {features, classes, at, at + features * classes};
    parameters = head.bias + classes;
}

void LevelMemory::fit(const LevelShape& shape, int packs, bool with_seed) {
    wide.fit(shape.plane, shape.out, packs);
    if (shape.pools) top.fit(Plane{shape.after.height, shape.after.width, 0}, shape.out, packs);
    if (with_seed) {
        seeded.fit(shape.after, shape.out, packs);
        slot.plane = shape.after;
        slot.channels = shape.out;
        slot.packs = packs;
    }
    const std::size_t out = shape.padded(), kernel = shape.weights(nullptr).packed_size();
    packed.resize(kernel);
    turned.resize(kernel);
    for (auto* of : {&sign, &shift, &mean, &spread, &scale, &slope, &constant}) of->resize(out);
    sums.resize(2 * out);
    lanes.fit(SHARES * 2 * out);
}

// LANES numbers of LANES images at a time, in the order of their memory: columns, rows, and channels fastest.
void gather_images(const EsperSplit& split, const std::int64_t* order, int samples, int channels, Maps& in, int pack) {
    const Plane plane = in.plane;
    const std::ptrdiff_t each = std::ptrdiff_t(plane.pixels()) * channels, size = plane.size();
    const int first = pack * LANES, there = samples - first < LANES ? samples - first : LANES;
    const Bits valid = first_lanes(there);
    const float* from[LANES];
    for (int lane = 0; lane < LANES; lane++) from[lane] = split.images + order[first + (lane < there ? lane : 0)] * each;
    Vec* to = in.pack(pack);
    int c = 0, x = 0, y = 0;
    for (std::ptrdiff_t i = 0; i < each; i += LANES) {
        const int count = each - i < LANES ? int(each - i) : LANES;
        Vec v[LANES];
        for (int lane = 0; lane < LANES; lane++) {
            v[lane] = Vec{};
            if (count == LANES)
                __builtin_memcpy(&v[lane], from[lane] + i, sizeof(Vec));
            else
                __builtin_memcpy(&v[lane], from[lane] + i, sizeof(float) * count);
        }
        transpose(v);
        for (int k = 0; k < count; k++) {
            to[c * size + plane.at(y, x)] = kept(valid, v[k]);
            if (++c < channels) continue;
            c = 0;
            if (++x < plane.width) continue;
            x = 0;
            y++;
        }
    }
}

}  // namespace esper
