#include "seed.h"

#include "optimiser.h"

namespace esper {

int Layer::kept() const {
    if (kind == ESPER_NORM) return 2 * size;
    return kind == ESPER_EXCITE ? perceptron().kept() : 0;
}

void Seed::take(int from, int count, int step, int& to) {
    to = int(values_.size());
    sections_.push_back(Section{from, to, count, step});
    for (int i = 0; i < count; i++) {
        values_.push_back(seed_.values[from + i * step]);
        momentum_.push_back(seed_.momentum[from + i * step]);
    }
}

void Seed::add_layer(const EsperLayer& l) {
    if (l.kind == ESPER_RELU && !layers_.empty() && layers_.back().kind <= ESPER_NORM && !layers_.back().relu) {
        layers_.back().relu = true;
        return;
    }
    Layer layer{EsperLayerKind(l.kind), l.inputs, l.outputs, l.size, {0, 0, 0}, false};
    const auto counts = parameters_of(l);
    const bool centre = layer.kind <= ESPER_DEPTHWISE && memory_.plane.single();
    const int step = centre ? l.size * l.size : 1;
    if (centre) layer.size = 1;
    for (int i = 0; i < 3; i++)
        if (counts[i] > 0) take(l.at[i] + step / 2, int(counts[i]) / step, step, layer.at[i]);
    layers_.push_back(layer);
}

Seed::Seed(const EsperSeed& seed, SlotMemory& memory, bool training) : seed_(seed), memory_(memory) {
    gated_ = !seed.incubating && seed.join == ESPER_GATE;
    learns_ = training && (seed.trained || seed.fossil);
    for (int i = 0; i < seed.n_layers; i++) add_layer(seed.layers[i]);
    if (gated_) {
        const int c = memory.channels, h = seed.gate_hidden;
        gate_ = {{c, h, 0, 0}, {h, 1, 0, 0}};
        take(seed.gate, c * h, 1, gate_.first.weight);
        take(seed.gate + c * h, h, 1, gate_.first.bias);
        take(seed.gate + c * h + h, h, 1, gate_.second.weight);
        take(seed.gate + c * h + 2 * h, 1, 1, gate_.second.bias);
    }
    gradient_.resize(values_.size());
    sums_.fit(SHARES * values_.size());
    packed_.resize(layers_.size());
    turned_.resize(layers_.size());
    fit_memory(memory.packs);
}

void Seed::write_back() const {
    if (!seed_.trained) return;
    for (const Section& s : sections_)
        for (int i = 0; i < s.count; i++) {
            seed_.values[s.from + i * s.step] = values_[s.to + i];
            seed_.momentum[s.from + i * s.step] = momentum_[s.to + i];
        }
}

void Seed::fit_memory(int packs) {
    std::size_t small = gate_.kept() + gate_.first.out;
    int widest = memory_.channels;
    if (memory_.outputs.size() < layers_.size()) {
        memory_.outputs.resize(layers_.size());
        memory_.kept.resize(layers_.size());
    }
    for (std::size_t i = 0; i < layers_.size(); i++) {
        const Layer& layer = layers_[i];
        memory_.outputs[i].fit(memory_.plane, layer.out, packs);
        memory_.kept[i].fit(std::size_t(packs) * layer.kept());
        small = std::size_t(3 * layer.in + layer.kept()) > small ? 3 * layer.in + layer.kept() : small;
        widest = layer.in > widest ? layer.in : layer.out > widest ? layer.out : widest;
    }
    for (Maps& maps : memory_.gradient) maps.fit(memory_.plane, widest, packs);
    memory_.joined.fit(std::size_t(packs) * 4);
    memory_.opened.fit(std::size_t(packs) * gate_.kept());
    memory_.small.fit(small + 2 * widest);
}

void Seed::begin_step() {
    for (std::size_t i = 0; i < layers_.size(); i++) {
        if (layers_[i].kind != ESPER_CONV) continue;
        const Kernel kernel = layers_[i].kernel(values_.data());
        packed_[i].resize(kernel.packed_size());
        pack_kernel(kernel, nullptr, packed_[i].data());
        if (learns_ && (i > 0 || seed_.fossil)) {
            turned_[i].resize(kernel.packed_size());
            pack_turned(kernel, nullptr, turned_[i].data());
        }
    }
    if (learns_) sums_.clear();
}

void Seed::end_step(const EsperRule& rule) {
    if (!seed_.trained) return;
    sums_across(sums_.data(), values_.size(), values_.size(), gradient_.data());
    const Descent descent{rule.seed_lr, rule.momentum, 0.0f, rule.max_grad_norm};
    descend(values_.data(), momentum_.data(), gradient_.data(), values_.size(), descent);
}

// --- forward --------------------------------------------------------------------------------------------------------

void Seed::forward(const Maps& h, Maps& out, int packs) {
    const int group = packs_at_once(memory_.plane.size() * memory_.channels);
    for (int first = 0; first < packs; first += group) {
        const int count = packs - first < group ? packs - first : group;
        for (std::size_t i = 0; i < layers_.size(); i++) layer_forward(i, h.pack(first), h.stride, first, count);
        for (int pack = first; pack < first + count; pack++) join(h.pack(pack), out.pack(pack), pack);
    }
}

void Seed::layer_forward(std::size_t i, const Vec* h, std::ptrdiff_t apart, int first, int count) {
    const Layer& layer = layers_[i];
    const float* p = values_.data();
    const Plane plane = memory_.plane;
    Maps& mine = memory_.outputs[i];
    Packs packs{h, apart, mine.pack(first), mine.stride, count};
    if (i > 0) {
        packs.in = memory_.outputs[i - 1].pack(first);
        packs.in_apart = memory_.outputs[i - 1].stride;
    }
    Vec* kept = memory_.kept[i].data() + first * layer.kept();
    switch (layer.kind) {
        case ESPER_CONV:
            convolve_packs(packs, plane, packed_[i].data(), layer.in, layer.out, layer.size, layer.relu);
            return;
        case ESPER_DEPTHWISE:
            convolve_depthwise(packs, plane, layer.kernel(p), layer.relu, false);
            return;
        case ESPER_NORM: {
            const GroupNorm norm{p + layer.at[0], p + layer.at[1], layer.in, layer.size};
            norm_forward(packs, plane, norm, layer.relu, kept, kept + count * layer.size);
            return;
        }
        default:
            break;
    }
    for (int pack = 0; pack < count; pack++) {
        const Vec *x = packs.in + pack * packs.in_apart, *from = h + pack * apart;
        Vec* y = packs.out + pack * packs.out_apart;
        if (layer.kind == ESPER_RELU) {
            each_pixel(plane, layer.out, [&](std::ptrdiff_t at) { y[at] = rectified(x[at]); });
        } else if (layer.kind == ESPER_TOWARDS) {
            const Vec scale = hyperbolic_tangent(splat(p[layer.at[0]]));
            each_pixel(plane, layer.out, [&](std::ptrdiff_t at) { y[at] = (x[at] - from[at]) * scale; });
        } else {
            const Perceptron excite = layer.perceptron();
            Vec* passed = kept + pack * layer.kept();
            pool(x, plane, layer.in, passed);
            perceptron_forward(excite, p, passed);
            const Vec* factor = passed + excite.kept() - layer.in;
            for (int c = 0; c < layer.in; c++) {
                const Vec less = factor[c] - splat(1.0f);
                const std::ptrdiff_t from_c = c * plane.size();
                each_pixel(plane, 1, [&](std::ptrdiff_t at) { y[from_c + at] = x[from_c + at] * less; });
            }
        }
    }
}

}  // namespace esper
