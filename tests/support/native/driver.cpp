// Trains and measures networks of many shapes through the kernel's functions, in arrays that end where they say; then
// again with one number of the call changed, which has to be refused or be as harmless.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "api.h"

namespace {

std::uint32_t state = 1;

int draw(int below) {
    state = state * 1664525u + 1013904223u;
    return int((state >> 8) % std::uint32_t(below));
}

// Exactly so many numbers, so that the sanitizer sees the next one.
float* numbers(int count) {
    float* found = (float*)std::malloc(sizeof(float) * count);
    for (int i = 0; i < count; i++) found[i] = float(draw(2001) - 1000) / 1000.0f;
    return found;
}

struct Grown {
    std::vector<EsperLayer> layers;
    EsperSeed seed{};
};

Grown grown(int channels) {
    Grown found;
    int at = 0, into = channels;
    auto add = [&](EsperLayerKind kind, int out, int size, int first, int second, int third) {
        found.layers.push_back({kind, into, out, size, {at, at + first, at + first + second}});
        at += first + second + third;
        into = out;
    };
    const int layers = 1 + draw(5);
    for (int i = 0; i < layers; i++) {
        const bool last = i + 1 == layers;
        const int taps = 1 + 2 * draw(3), out = last ? channels : 1 + draw(9);
        const int kind = into == channels || !last ? draw(6) : ESPER_CONV;
        if (kind == ESPER_CONV) add(ESPER_CONV, out, taps, out * into * taps * taps, 0, 0);
        if (kind == ESPER_DEPTHWISE) add(ESPER_DEPTHWISE, into, taps, into * taps * taps, 0, 0);
        if (kind == ESPER_NORM) add(ESPER_NORM, into, into % 2 ? 1 : 2, into, into, 0);
        if (kind == ESPER_RELU) add(ESPER_RELU, into, 0, 0, 0, 0);
        if (kind == ESPER_TOWARDS && into == channels) add(ESPER_TOWARDS, into, 0, 1, 0, 0);
        if (kind == ESPER_EXCITE) add(ESPER_EXCITE, into, 3, into * 3, into * 3, into);
    }
    if (found.layers.empty()) add(ESPER_NORM, into, 1, into, into, 0);
    const int hidden = 8, width = at + channels * hidden + 2 * hidden + 1;
    const bool incubating = draw(4) == 0;
    found.seed = {numbers(width), numbers(width), nullptr, int(found.layers.size()), width, at, hidden, draw(3),
        incubating, !incubating && draw(3) == 0, draw(4) != 0, float(draw(11)) / 10.0f};
    return found;
}

int refusals = 0;

// A host of any numbers, small and large ones.
void open_any() {
    const std::int32_t odd[] = {-2147483647 - 1, -1, 0, 1, 2, 3, 4, 5, 7, 15, 16, 17, 31, 1 << 16, 1 << 20, 2147483647};
    std::int32_t n[9];
    for (std::int32_t& x : n) x = odd[draw(3) ? 3 + draw(6) : draw(16)];
    const EsperHost host{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]};
    EsperWorkspace* workspace = nullptr;
    if (esper_open(&host, n[8], &workspace))
        refusals++;
    else
        esper_close(workspace);
}

int one() {
    const int levels = 1 + draw(3), pools = draw(levels + 1), kernel = 1 + 2 * draw(3);
    const EsperHost host{1 + draw(3), (1 << pools) + draw(9), (1 << pools) + draw(9), 3 + draw(6), levels, kernel, pools,
        2 + draw(11)};
    const int samples = 1 + draw(70), image = host.in_channels * host.height * host.width;
    int width = 0, into = host.in_channels;
    std::vector<Grown> slots;
    std::vector<float*> mean, var;
    for (int level = 0; level < levels; level++) {
        const int out = host.base << level;
        width += out * into * kernel * kernel + 2 * out;
        into = out;
        slots.push_back(grown(out));
        mean.push_back(numbers(out));
        var.push_back(numbers(out));
        for (int c = 0; c < out; c++) var[level][c] = 1.0f + var[level][c] * var[level][c];
    }
    width += (into + 1) * host.classes;
    std::vector<EsperSeed> seeds;
    for (Grown& slot : slots) {
        slot.seed.layers = draw(4) ? slot.layers.data() : nullptr;
        seeds.push_back(slot.seed);
    }
    float *values = numbers(width), *momentum = numbers(width), *images = numbers(samples * image);
    std::vector<std::int64_t> labels, order;
    for (int i = 0; i < samples; i++) {
        labels.push_back(draw(host.classes));
        order.push_back((i + 3) % samples);
    }
    EsperSplit split{images, labels.data(), samples, image};
    EsperRule rule{1 + draw(40), 0.01f, 0.01f, 0.9f, 5e-4f, 1.0f};
    EsperNetwork network{values, momentum, mean.data(), var.data(), seeds.data(), width};
    EsperWorkspace* workspace = nullptr;
    if (esper_open(&host, 2, &workspace)) return 1;
    double measured[2], loss;
    int status = esper_train(workspace, &rule, &network, &split, order.data(), measured);
    std::vector<std::int32_t> rows;
    std::vector<std::vector<std::int64_t>> parents(levels);
    std::vector<std::vector<std::uint8_t>> on(levels);
    std::vector<const std::int64_t*> parents_at;
    std::vector<const std::uint8_t*> on_at;
    for (int level = 0; level < levels; level++) {
        rows.push_back(1 << (level + 1));
        for (int row = 0; row < rows[level]; row++) {
            parents[level].push_back(row / 2);
            on[level].push_back(row % 2);
        }
        parents_at.push_back(parents[level].data());
        on_at.push_back(on[level].data());
    }
    EsperTree tree{rows.data(), parents_at.data(), on_at.data(), rows.back() - 1};
    std::vector<std::int64_t> right(rows.back());
    status = status ? status : esper_measure(workspace, &network, &split, &tree, right.data(), &loss);
    std::vector<std::int32_t*> numbers{&rule.batch_size, &network.width, &tree.real, &rows[draw(levels)]};
    for (EsperSeed& seed : seeds)
        if (seed.layers != nullptr)
            for (std::int32_t* number : {&seed.n_layers, &seed.width, &seed.gate, &seed.gate_hidden, &seed.join})
                numbers.push_back(number);
    for (Grown& slot : slots)
        for (EsperLayer& l : slot.layers)
            for (std::int32_t* number : {&l.kind, &l.inputs, &l.outputs, &l.size, &l.at[0], &l.at[1], &l.at[2]})
                numbers.push_back(number);
    std::vector<std::int64_t*> wide{&split.each, &labels[draw(samples)], &order[draw(samples)],
        &parents[levels - 1][draw(rows.back())]};
    auto again = [&] {
        if (esper_train(workspace, &rule, &network, &split, order.data(), measured)) refusals++;
        if (esper_measure(workspace, &network, &split, &tree, right.data(), &loss)) refusals++;
    };
    for (int i = 0; i < 12; i++) {
        std::int32_t* const number = numbers[draw(int(numbers.size()))];
        const std::int32_t before = *number;
        // That an array is shorter than it is said to be nobody can know.
        bool counts = number >= rows.data() && number < rows.data() + levels;
        for (const EsperSeed& seed : seeds) counts = counts || number == &seed.n_layers;
        for (std::int64_t other : {std::int64_t(-1), std::int64_t(0), before - 1l, before + 1l, before * 2l, 2147483647l}) {
            *number = std::int32_t(other);
            if (!counts || other < before) again();
        }
        *number = before;
    }
    for (std::int64_t* number : wide) {
        const std::int64_t before = *number;
        for (std::int64_t other : {std::int64_t(-1), std::int64_t(1) << 32, before + 1, before + 1000000}) {
            *number = other;
            again();
        }
        *number = before;
    }
    esper_close(workspace);
    for (float* part : {values, momentum, images}) std::free(part);
    for (int level = 0; level < levels; level++)
        for (float* part : {mean[level], var[level], slots[level].seed.values, slots[level].seed.momentum})
            std::free(part);
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    const int networks = argc > 1 ? std::atoi(argv[1]) : 100;
    for (int i = 0; i < networks; i++)
        if (one()) {
            std::fprintf(stderr, "network %d was refused\n", i);
            return 1;
        }
    for (int i = 0; i < 1000 * networks; i++) open_any();
    if (refusals == 0) return 1;
    std::printf("%d networks\n", networks);
}
