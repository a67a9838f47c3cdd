// One epoch of one network and its seeds.
#include <memory>

#include "head.h"
#include "optimiser.h"
#include "valid.h"

namespace esper {

namespace {

class Epoch {
public:
    Epoch(EsperWorkspace& w, const EsperRule& rule, const EsperNetwork& network, const EsperSplit& split)
        : w_(w), rule_(rule), network_(network), split_(split), levels_(w.shape.levels.size()) {
        const std::int64_t most = rule.batch_size < split.samples ? rule.batch_size : split.samples;
        const int packs = packs_of(int(most));
        w.features.resize(levels_ + 1);
        w.gradients.resize(levels_ + 1);
        w.levels.resize(levels_);
        w.sums.fit(std::size_t(SHARES) * w.shape.parameters);
        w.gradient.resize(w.shape.parameters);
        seeds_.resize(levels_);
        for (std::size_t b = 0; b < levels_; b++) {
            const LevelShape& shape = w.shape.levels[b];
            const EsperSeed& seed = network.seeds[b];
            w.features[b].fit(shape.plane, shape.in, packs);
            if (b > 0) w.gradients[b].fit(shape.plane, shape.in, packs);
            w.levels[b].fit(shape, packs, seed.layers != nullptr);
            trained_.emplace_back(shape, w.levels[b]);
            if (seed.layers != nullptr) seeds_[b] = std::make_unique<Seed>(seed, w.levels[b].slot);
        }
        w.features[levels_].fit(w.shape.last, w.shape.features, packs);
        w.gradients[levels_].fit(w.shape.last, w.shape.features, packs);
    }

    Outcome run(const std::int64_t* order) {
        for (std::int64_t start = 0; start < split_.samples; start += rule_.batch_size) {
            const std::int64_t left = split_.samples - start;
            const Batch batch(int(left < rule_.batch_size ? left : rule_.batch_size));
            step(order + start, batch, start == 0);
        }
        for (const auto& seed : seeds_)
            if (seed != nullptr) seed->write_back();
        return outcome_;
    }

private:
    void step(const std::int64_t* order, const Batch& batch, bool first) {
        for (int pack = 0; pack < batch.packs; pack++)
            gather_images(split_, order, batch.samples, w_.host.in_channels, w_.features[0], pack);
        forward(batch, first);
        w_.sums.clear();
        classify(order, batch);
        backward(batch);
        const std::size_t parameters = w_.shape.parameters;
        sums_across(w_.sums.data(), parameters, parameters, w_.gradient.data());
        for (const TrainedLevel& level : trained_) level.finish_gradient(w_.gradient.data());
        const Descent descent{rule_.host_lr, rule_.momentum, rule_.weight_decay, rule_.max_grad_norm};
        descend(network_.values, network_.momentum, w_.gradient.data(), parameters, descent);
    }

    void forward(const Batch& batch, bool first) {
        for (std::size_t b = 0; b < levels_; b++) {
            const bool seeded = seeds_[b] != nullptr;
            const Maps& in = w_.features[b];
            Maps& out = seeded ? w_.levels[b].seeded : w_.features[b + 1];
            if (first) trained_[b].find_shift(network_.values, in, batch);
            trained_[b].forward(network_.values, in, out, batch, network_.mean[b], network_.var[b]);
            if (!seeded) continue;
            seeds_[b]->begin_step();
            seeds_[b]->forward(out, w_.features[b + 1], batch.packs);
        }
    }

    void classify(const std::int64_t* order, const Batch& batch) {
        Head head(w_.shape, network_.values, w_.small);
        for (int pack = 0; pack < batch.packs; pack++) {
            const int count = batch.in_pack(pack);
            std::int64_t labels[LANES];
            for (int lane = 0; lane < count; lane++) labels[lane] = split_.labels[order[pack * LANES + lane]];
            head.forward(w_.features[levels_].pack(pack), labels, count, true, outcome_);
            Vec* sums = w_.sums.data() + share(pack) * std::size_t(w_.shape.parameters);
            head.backward(count, batch.samples, sums, w_.gradients[levels_].pack(pack));
        }
    }

    void backward(const Batch& batch) {
        for (std::size_t b = levels_; b-- > 0;) {
            Maps& g = w_.gradients[b + 1];
            if (seeds_[b] != nullptr) {
                seeds_[b]->backward(w_.levels[b].seeded, g, batch.packs);
                seeds_[b]->end_step(rule_);
            }
            Maps* into = b > 0 ? &w_.gradients[b] : nullptr;
            trained_[b].backward(w_.features[b], g, into, batch, w_.sums.data(), w_.shape.parameters);
        }
    }

    EsperWorkspace& w_;
    const EsperRule& rule_;
    const EsperNetwork& network_;
    const EsperSplit& split_;
    std::size_t levels_;
    std::vector<TrainedLevel> trained_;
    std::vector<std::unique_ptr<Seed>> seeds_;
    Outcome outcome_;
};

}  // namespace

}  // namespace esper

extern "C" {

std::int32_t esper_open(const EsperHost* host, std::int32_t border, EsperWorkspace** opened) {
    return esper::guarded([&] {
        const EsperStatus status = esper::valid_host(*host, border);
        if (status == ESPER_OK) *opened = new EsperWorkspace(*host, border);
        return status;
    });
}

void esper_close(EsperWorkspace* workspace) { delete workspace; }

std::int32_t esper_train(
    EsperWorkspace* workspace, const EsperRule* rule, const EsperNetwork* network, const EsperSplit* split,
    const std::int64_t* order, double* measured
) {
    return esper::guarded([&] {
        EsperStatus status = esper::valid_network(*workspace, *network);
        if (status == ESPER_OK) status = esper::valid_split(*workspace, *split);
        if (status == ESPER_OK) status = esper::valid_order(rule->batch_size, order, split->samples);
        if (status != ESPER_OK) return status;
        const esper::Outcome outcome = esper::Epoch(*workspace, *rule, *network, *split).run(order);
        measured[0] = outcome.loss;
        measured[1] = double(outcome.right);
        return status;
    });
}
}
