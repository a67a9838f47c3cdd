#include "valid.h"

namespace esper {

std::int64_t numbers(std::initializer_list<std::int64_t> extents) {
    constexpr std::int64_t MOST_NUMBERS = 1 << 28;
    std::int64_t product = 1;
    for (std::int64_t extent : extents) {
        if (extent < 1 || extent > MOST_NUMBERS || (product *= extent) > MOST_NUMBERS) return -1;
    }
    return product;
}

std::array<std::int64_t, 3> parameters_of(const EsperLayer& l) {
    switch (l.kind) {
        case ESPER_CONV: return {numbers({l.outputs, l.inputs, l.size, l.size}), 0, 0};
        case ESPER_DEPTHWISE: return {numbers({l.outputs, l.size, l.size}), 0, 0};
        case ESPER_NORM: return {l.inputs, l.inputs, 0};
        case ESPER_TOWARDS: return {1, 0, 0};
        case ESPER_EXCITE: return {numbers({l.inputs, l.size}), numbers({l.size, l.inputs}), l.inputs};
        default: return {0, 0, 0};
    }
}

namespace {

bool within(std::int64_t x, std::int64_t below) { return x >= 0 && x < below; }

bool fits_kernel(int kernel, int border) { return kernel % 2 == 1 && within(kernel / 2, border + 1) && kernel <= MOST; }

// Whether `count` numbers from `at` on lie in a row of `width`.
bool in_row(std::int64_t at, std::int64_t count, int width) {
    return count == 0 || (count > 0 && at >= 0 && at + count <= width);
}

EsperStatus valid_layer(const EsperLayer& l, int into, const LevelShape& shape, int width, int border) {
    const bool convolves = l.kind == ESPER_CONV || l.kind == ESPER_DEPTHWISE;
    if (!within(l.kind, ESPER_EXCITE + 1)) return ESPER_LAYER;
    if (l.inputs != into || (l.kind != ESPER_CONV && l.outputs != into)) return ESPER_CHAIN;
    if (l.kind == ESPER_TOWARDS && into != shape.out) return ESPER_CHAIN;
    if (convolves && !fits_kernel(l.size, border)) return ESPER_KERNEL;
    if (l.kind == ESPER_NORM && (l.size < 1 || into % l.size != 0)) return ESPER_LAYER;
    if (numbers({shape.after.size(), l.outputs}) < 0) return ESPER_SIZE;
    const auto counts = parameters_of(l);
    for (int i = 0; i < 3; i++)
        if (!in_row(l.at[i], counts[i], width)) return ESPER_ROW;
    return ESPER_OK;
}

EsperStatus valid_seed(const EsperSeed& seed, const LevelShape& shape, int border) {
    if (seed.n_layers < 1 || !within(seed.join, ESPER_GATE + 1)) return ESPER_LAYER;
    int into = shape.out;
    for (int i = 0; i < seed.n_layers; i++) {
        const EsperStatus status = valid_layer(seed.layers[i], into, shape, seed.width, border);
        if (status != ESPER_OK) return status;
        into = seed.layers[i].outputs;
    }
    if (into != shape.out) return ESPER_CHAIN;
    const bool gated = !seed.incubating && seed.join == ESPER_GATE;
    const std::int64_t gate = numbers({shape.out + 2, seed.gate_hidden});
    return gated && (gate < 0 || !in_row(seed.gate, gate + 1, seed.width)) ? ESPER_ROW : ESPER_OK;
}

}  // namespace

EsperStatus valid_host(const EsperHost& host, int border) {
    constexpr int MOST_LEVELS = 24;
    if (host.levels < 1 || host.levels > MOST_LEVELS || host.pools < 0 || host.base < 1) return ESPER_SIZE;
    if (border > MOST / 2 || !fits_kernel(host.kernel, border)) return ESPER_KERNEL;
    std::int64_t parameters = 0, in = host.in_channels;
    for (int b = 0; b <= host.levels; b++) {
        const int halved = b < host.pools ? b : host.pools;
        const std::int64_t height = host.height >> halved, width = host.width >> halved;
        if (height < 1 || width < 1) return host.height < 1 || host.width < 1 ? ESPER_SIZE : ESPER_POOLS;
        const bool last = b == host.levels;
        const std::int64_t out = last ? host.classes : std::int64_t(host.base) << b;
        const std::int64_t kernel = last ? numbers({out, in}) : numbers({out, in, host.kernel, host.kernel});
        const std::int64_t most = out > in ? out : in;
        if (kernel < 0 || numbers({most, height + 2 * border, width + 2 * border}) < 0) return ESPER_SIZE;
        parameters += kernel + 2 * out;
        in = out;
    }
    return numbers({parameters}) < 0 ? ESPER_SIZE : ESPER_OK;
}

EsperStatus valid_split(const EsperWorkspace& w, const EsperSplit& split) {
    const EsperHost& host = w.host;
    if (split.each != std::int64_t(host.in_channels) * host.height * host.width) return ESPER_IMAGE;
    if (numbers({split.samples}) < 0) return ESPER_BATCH;
    for (std::int64_t i = 0; i < split.samples; i++)
        if (!within(split.labels[i], host.classes)) return ESPER_LABEL;
    return ESPER_OK;
}

EsperStatus valid_order(int batch_size, const std::int64_t* order, std::int64_t samples) {
    if (numbers({batch_size}) < 0) return ESPER_BATCH;
    for (std::int64_t i = 0; i < samples; i++)
        if (!within(order[i], samples)) return ESPER_ORDER;
    return ESPER_OK;
}

EsperStatus valid_network(const EsperWorkspace& w, const EsperNetwork& network) {
    EsperStatus status = network.width == w.shape.parameters ? ESPER_OK : ESPER_ROW;
    for (std::size_t b = 0; b < w.shape.levels.size() && status == ESPER_OK; b++)
        if (network.seeds[b].layers != nullptr) status = valid_seed(network.seeds[b], w.shape.levels[b], w.border);
    return status;
}

EsperStatus valid_tree(const EsperTree& tree, int levels) {
    std::int64_t before = 1;
    for (int b = 0; b < levels; before = tree.rows[b++]) {
        if (numbers({tree.rows[b]}) < 0) return ESPER_TREE;
        for (int row = 0; row < tree.rows[b]; row++)
            if (!within(tree.parents[b][row], before)) return ESPER_TREE;
    }
    return within(tree.real, before) ? ESPER_OK : ESPER_TREE;
}

}  // namespace esper
