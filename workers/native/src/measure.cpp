// Evaluation mode: every configuration of one network over a split, sharing what comes before the first difference.
#include <memory>

#include "head.h"
#include "valid.h"

namespace esper {

namespace {

constexpr int MOST_PACKS = 4;  // that are worked on together

// Batch norm in evaluation mode is a factor and a constant per channel, part of the convolution.
void fold(const LevelShape& shape, const EsperNetwork& network, std::size_t b, EsperWorkspace& w) {
    const float* row = network.values;
    std::vector<float>& start = w.folded_bias[b];
    std::vector<float> factor(shape.out);
    start.assign(shape.padded(), 0.0f);
    for (int o = 0; o < shape.out; o++) {
        factor[o] = row[shape.gain + o] / __builtin_sqrtf(network.var[b][o] + BN_EPS);
        start[o] = row[shape.bias + o] - network.mean[b][o] * factor[o];
    }
    const Kernel kernel = shape.weights(row);
    w.folded[b].resize(kernel.packed_size());
    pack_kernel(kernel, factor.data(), w.folded[b].data());
}

// The greatest of four; what is not a number stays.
INLINE Vec pooled(Vec a, Vec b, Vec c, Vec d) {
    const Vec all = (a + b) + (c + d);
    return pick(all != all, all, greatest(greatest(a, b), greatest(c, d)));
}

void measure_level(const LevelShape& shape, const float* packed, const float* start, const Maps& in, Maps& out, int packs) {
    const Plane plane = shape.plane, after = shape.after;
    if (plane.single()) {
        convolve_single(in.pack(0), in.stride, packs, packed, shape.in, shape.out, start,
            [&](int pack, int o, Vec a) { out.pack(pack)[o] = rectified(a); });
        return;
    }
    for (int pack = 0; pack < packs; pack++) {
        Vec* z = out.pack(pack);
        auto done = [&](int o, int y, int x, Vec a, Vec b, Vec c, Vec d) __attribute__((always_inline)) {
            if (shape.pools) {
                if (x + 1 == plane.width || y + 1 == plane.height) return;
                z[o * after.size() + after.at(y / 2, x / 2)] = rectified(pooled(a, b, c, d));
                return;
            }
            store(z + o * after.size(), after, y, x, rectified(a), rectified(b), rectified(c), rectified(d));
        };
        convolve(in.pack(pack), plane, packed, shape.in, shape.out, shape.taps, start, done);
    }
}

class Measurement {
public:
    Measurement(
        EsperWorkspace& w, const EsperNetwork& network, const EsperSplit& split, const EsperTree& tree,
        std::int64_t* right
    )
        : w_(w), network_(network), split_(split), tree_(tree), right_(right), levels_(w.shape.levels.size()) {
        const LevelShape& first = w.shape.levels[0];
        const int near = packs_at_once(first.after.size() * first.out);
        group_ = near < MOST_PACKS ? near : MOST_PACKS;
        w.measured.resize(2 * levels_ + 1);
        w.measured_slots.resize(levels_);
        w.folded.resize(levels_);
        w.folded_bias.resize(levels_);
        w.measured[2 * levels_].fit(first.plane, first.in, group_);
        seeds_.resize(levels_);
        for (std::size_t b = 0; b < levels_; b++) {
            const LevelShape& shape = w.shape.levels[b];
            for (std::size_t i = 0; i < 2; i++) w.measured[2 * b + i].fit(shape.after, shape.out, group_);
            fold(shape, network, b, w);
            if (network.seeds[b].layers == nullptr) continue;
            SlotMemory& slot = w.measured_slots[b];
            slot.plane = shape.after;
            slot.channels = shape.out;
            slot.packs = group_;
            seeds_[b] = std::make_unique<Seed>(network.seeds[b], slot, false);
            seeds_[b]->begin_step();
        }
        order_.resize(std::size_t(group_) * LANES);
    }

    double run() {
        for (int row = 0; row < tree_.rows[levels_ - 1]; row++) right_[row] = 0;
        const int step = group_ * LANES;
        for (std::int64_t start = 0; start < split_.samples; start += step) {
            const std::int64_t left = split_.samples - start;
            samples_ = int(left < step ? left : step);
            packs_ = packs_of(samples_);
            for (int i = 0; i < samples_; i++) order_[i] = start + i;
            labels_ = split_.labels + start;
            Maps& images = w_.measured[2 * levels_];
            for (int pack = 0; pack < packs_; pack++)
                gather_images(split_, order_.data(), samples_, w_.host.in_channels, images, pack);
            walk(0, 0, images);
        }
        return loss_;
    }

private:
    // Row `row` in front of level `b`, with these features, and all rows that continue it.
    void walk(std::size_t b, int row, const Maps& in) {
        Maps &before = w_.measured[2 * b], &behind = w_.measured[2 * b + 1];
        measure_level(w_.shape.levels[b], w_.folded[b].data(), w_.folded_bias[b].data(), in, before, packs_);
        for (int next = 0; next < tree_.rows[b]; next++) {
            if (tree_.parents[b][next] != row) continue;
            const bool on = tree_.on[b][next] && seeds_[b] != nullptr;
            if (on) seeds_[b]->forward(before, behind, packs_);
            const Maps& features = on ? behind : before;
            if (b + 1 < levels_)
                walk(b + 1, next, features);
            else
                classify(next, features);
        }
    }

    void classify(int row, const Maps& features) {
        Head head(w_.shape, network_.values, w_.small);
        const Batch batch(samples_);
        const bool real = row == tree_.real;
        Outcome outcome;
        for (int pack = 0; pack < packs_; pack++)
            head.forward(features.pack(pack), labels_ + pack * LANES, batch.in_pack(pack), real, outcome);
        right_[row] += outcome.right;
        loss_ += outcome.loss;
    }

    EsperWorkspace& w_;
    const EsperNetwork& network_;
    const EsperSplit& split_;
    const EsperTree& tree_;
    std::int64_t* right_;
    std::size_t levels_;
    int group_ = 1, samples_ = 0, packs_ = 0;
    const std::int64_t* labels_ = nullptr;
    std::vector<std::unique_ptr<Seed>> seeds_;
    std::vector<std::int64_t> order_;
    double loss_ = 0.0;
};

}  // namespace

}  // namespace esper

extern "C" std::int32_t esper_measure(
    EsperWorkspace* workspace, const EsperNetwork* network, const EsperSplit* split, const EsperTree* tree,
    std::int64_t* right, double* loss
) {
    return esper::guarded([&] {
        EsperStatus status = esper::valid_network(*workspace, *network);
        if (status == ESPER_OK) status = esper::valid_split(*workspace, *split);
        if (status == ESPER_OK) status = esper::valid_tree(*tree, workspace->host.levels);
        if (status == ESPER_OK) *loss = esper::Measurement(*workspace, *network, *split, *tree, right).run();
        return status;
    });
}
