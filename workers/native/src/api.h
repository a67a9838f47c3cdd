// What a caller outside sees: plain structs, pointers into the caller's arrays, and five functions. Every size, index
// and label is validated before any memory is taken (valid.cpp); pointers have to point to as much as they say.
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
    std::int32_t kind, inputs, outputs, size, at[3];
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
    std::int64_t samples, each;  // each: numbers of an image
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
    std::int32_t width;      // parameters in the host's row
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

// What is wrong with a call; binding.py has a sentence for each.
enum EsperStatus : std::int32_t {
    ESPER_OK, ESPER_NO_MEMORY, ESPER_FAILED, ESPER_SIZE, ESPER_KERNEL, ESPER_POOLS, ESPER_ROW, ESPER_LAYER, ESPER_CHAIN,
    ESPER_BATCH, ESPER_IMAGE, ESPER_ORDER, ESPER_LABEL, ESPER_TREE
};

// Where a field lies in its struct; of a struct itself, how many bytes it has.
struct EsperField {
    const char* name;
    std::int32_t at;
};

#define ESPER_EXPORT __attribute__((visibility("default")))

// Functions that can fail return EsperStatus, and write their results only with ESPER_OK.

// Memory for networks of one shape, for one thread at a time. `border`: half of the widest kernel.
ESPER_EXPORT std::int32_t esper_open(const EsperHost* host, std::int32_t border, EsperWorkspace** opened);
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

// Of the structs above sizes and fields, by name, and LANES; the last name is null.
ESPER_EXPORT const EsperField* esper_layout();
}
