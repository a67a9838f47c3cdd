// What a caller outside sees: plain structs, pointers into the caller's arrays, and four functions.
// workers/native/binding.py declares the same; `esper_layout` lets it check that both mean the same.
#pragma once

#include <cstdint>

extern "C" {

// A host: `levels` times convolution, batch norm, 2x2 max-pool in the first `pools` of them, ReLU; then a linear layer
// on pooled features. Level i has `base` << i channels.
struct EsperHost {
    std::int32_t in_channels, height, width, base, levels, kernel, pools, classes;
};

enum EsperLayerKind : std::int32_t { ESPER_CONV, ESPER_DEPTHWISE, ESPER_NORM, ESPER_RELU, ESPER_TOWARDS, ESPER_EXCITE };

// A layer of a seed. `at`: where its parameters begin in the seed's row; conv: kernel; norm: gain, bias; towards:
// scale; excite: squeeze, excite, bias. `size`: taps of a kernel, groups of a norm, hidden units of excite.
struct EsperLayer {
    std::int32_t kind, in, out, size, at[3];
};

enum EsperJoin : std::int32_t { ESPER_ADD, ESPER_MULTIPLY, ESPER_GATE };

// A seed, or with `layers` null an empty slot. An incubating one is in no output, but learns.
struct EsperSeed {
    float* values;    // a row of parameters
    float* momentum;  // of the same row
    const EsperLayer* layers;
    std::int32_t n_layers, width;  // width: parameters in the row
    std::int32_t gate, gate_hidden;  // where the gate's parameters begin in the row; its hidden units
    std::int32_t join, incubating, fossil, trained;
    float alpha;
};

struct EsperSplit {
    const float* images;         // [samples][height][width][channels]
    const std::int64_t* labels;  // [samples]
    std::int64_t samples;
};

struct EsperRule {
    std::int32_t batch_size;
    float host_lr, seed_lr, momentum, weight_decay, max_grad_norm;
};

struct EsperNetwork {
    float* values;    // the host's row of parameters: per level kernel, gain, bias; head's weight and bias
    float* momentum;  // of the same row
    float* const* mean;  // [levels] running moments of batch norm
    float* const* var;
    const EsperSeed* seeds;  // [levels]
};

// A configuration tree of one network: behind level b there are `rows[b]` rows, row r continuing row parents[b][r]
// with the level's seed on or off. The last level's rows are the configurations.
struct EsperTree {
    const std::int32_t* rows;
    const std::int64_t* const* parents;
    const std::uint8_t* const* on;
    std::int32_t real;  // the row whose loss is wanted
};

struct EsperWorkspace;

enum EsperStatus : std::int32_t { ESPER_OK, ESPER_NO_MEMORY, ESPER_UNSUPPORTED };

#define ESPER_EXPORT __attribute__((visibility("default")))

// Memory for networks of one shape, for one thread at a time; null without memory. `border`: half of the widest kernel.
ESPER_EXPORT EsperWorkspace* esper_open(const EsperHost* host, std::int32_t border);
ESPER_EXPORT void esper_close(EsperWorkspace* workspace);

// One epoch over `order` [samples]; measured[0]: sum of losses, measured[1]: how many were right, in training mode.
ESPER_EXPORT std::int32_t esper_train(
    EsperWorkspace* workspace, const EsperRule* rule, const EsperNetwork* network, const EsperSplit* split,
    const std::int64_t* order, double* measured
);

// Evaluation mode over a whole split: right [rows of the last level], loss: sum over samples of the real row's.
ESPER_EXPORT std::int32_t esper_measure(
    EsperWorkspace* workspace, const EsperNetwork* network, const EsperSplit* split, const EsperTree* tree,
    std::int64_t* right, double* loss
);

// Trains and measures a small network on fixed inputs and writes `count` numbers of it, the same in every build whose
// bits are the same. Returns EsperStatus.
ESPER_EXPORT std::int32_t esper_known_answer(float* out, std::int32_t count);

// Sizes of the structs above in their order, and LANES: [9].
ESPER_EXPORT void esper_layout(std::int32_t* sizes);
}
